// SPDX-License-Identifier: Apache-2.0

package world

import (
	"maps"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// World's methods are serial.
type World struct {
	Objects
	Now time.Time
	// Stamps: VolumeAttachments are created with the attacher's finalizer.
	Stamps bool
	// Forgetful kubelets miss staged volumes without a pod's folder, like real ones. No fact in the API
	// shows it: a volume may then be at two machines.
	Forgetful bool
	// Mapped: mounts reach their disk after a detach, as with network storage.
	Mapped bool
	// OlderHolds: the API server drops VolumeHolds' newer fields: the boot, and forced detaches.
	OlderHolds bool

	// Refusals is replaced, never changed.
	Refusals []Refusal

	Machines map[string]*Machine // by ID, also former machines
	Disks    Disks
	Judge    Judge
}

func New() *World {
	return &World{
		Objects: newObjects(), Now: Start(), Stamps: true,
		Machines: map[string]*Machine{}, Disks: newDisks(), Judge: newJudge(),
	}
}

func (w *World) Clone() *World {
	c := *w
	c.Objects = w.Objects.clone()
	c.Machines = make(map[string]*Machine, len(w.Machines))
	for id, m := range w.Machines {
		c.Machines[id] = m.clone()
	}
	c.Disks = w.Disks.clone()
	c.Judge = w.Judge.clone()
	return &c
}

type At struct {
	Volume ledger.VolumeID
	Node   ledger.NodeName
}

// AsKept returns a fact's form after a read from the API, which has no room for some content. Nil:
// everything is kept.
var AsKept func(ledger.Event) ledger.Event

// An unchanged object keeps its version.
func (w *World) Put(e ledger.Event) ledger.Event {
	k, key := Identify(e)
	old := w.Get(k, key)
	if n, ok := e.(ledger.NodeState); ok {
		e = w.dated(old, n)
	}
	if AsKept != nil {
		e = AsKept(e)
	}
	if old != nil && equal(old, e) {
		return old
	}
	e = w.put(e)
	w.Judge.changed(w, old, e)
	return e
}

// dated sets the last change of Ready in whole seconds, as the condition's writer does.
func (w *World) dated(old ledger.Event, n ledger.NodeState) ledger.NodeState {
	if was, exists := old.(ledger.NodeState); !exists || was.Ready != n.Ready {
		n.ReadySince = w.Now.Unix()
	}
	return n
}

func (w *World) Drop(k Kind, key string) {
	if old := w.Get(k, key); old != nil {
		w.drop(k, key)
		w.Judge.changed(w, old, nil)
	}
}

func (w *World) DeletePod(uid string) {
	p, exists := w.Pod(uid)
	switch {
	case !exists:
	case p.Node == "":
		w.Drop(Pods, uid)
	default:
		w.deleting = with(w.deleting, uid, true)
		if p.Phase == ledger.PodLive {
			p.Phase = ledger.PodTerminating
			w.Put(p)
		}
	}
}

// Touch gives a pod another version, without a relevant change.
func (w *World) Touch(uid string) {
	if p, exists := w.Pod(uid); exists {
		w.put(p)
	}
}

func (w *World) Resolve(key ledger.ClaimKey) (ledger.VolumeID, bool) {
	claim, ok := typed[ledger.Claim](&w.Objects, Claims, key.String())
	if !ok || !claim.Bound {
		return ledger.VolumeID{}, false
	}
	pv, ok := typed[ledger.PersistentVolume](&w.Objects, PersistentVolumes, claim.PersistentVolume)
	return pv.Volume, ok && !pv.Volume.IsZero() && (pv.Claim == ledger.ClaimKey{} || pv.Claim == key)
}

func (w *World) Needs(v ledger.VolumeID) bool {
	d, known := typed[ledger.Driver](&w.Objects, Drivers, v.Driver)
	return !known || d.AttachRequired
}

// VolumesOf is false if a claim has no volume. Read only.
func (w *World) VolumesOf(p ledger.Pod) ([]ledger.VolumeID, bool) {
	if l, known := w.leads[p.UID]; known {
		return l.volumes, l.complete
	}
	list, complete := w.volumesOf(p)
	w.leads = maps.Clone(w.leads) // clones share it
	w.leads[p.UID] = leads{list, complete}
	return list, complete
}

func (w *World) volumesOf(p ledger.Pod) (list []ledger.VolumeID, complete bool) {
	complete = true
	for _, pv := range p.Volumes {
		id, ok := pv.Inline, pv.Claim == ""
		if !ok {
			id, ok = w.Resolve(ledger.ClaimKey{Namespace: p.Namespace, Name: pv.Claim})
		}
		complete = complete && ok
		if ok && w.Needs(id) && !slices.Contains(list, id) {
			list = append(list, id)
		}
	}
	return list, complete
}

// Exclusive is this package's reading of access modes: any PersistentVolume, also a vanished one, may make
// a volume exclusive.
func (w *World) Exclusive(v ledger.VolumeID) bool {
	for _, pv := range w.all[PersistentVolumes] {
		if pv := pv.(ledger.PersistentVolume); pv.Volume == v && pv.Access >= ledger.AccessNode {
			return true
		}
	}
	for _, pv := range w.vanished {
		if pv.Volume == v && pv.Access >= ledger.AccessNode {
			return true
		}
	}
	return false
}

func (w *World) Volumes() []ledger.VolumeID {
	set := map[ledger.VolumeID]bool{}
	for _, pv := range w.all[PersistentVolumes] {
		set[pv.(ledger.PersistentVolume).Volume] = true
	}
	return SortVolumes(slices.Collect(maps.Keys(set)))
}

func (w *World) Source(a ledger.Attachment) (ledger.VolumeID, bool) {
	if !a.Inline.IsZero() {
		return a.Inline, true
	}
	pv, ok := typed[ledger.PersistentVolume](&w.Objects, PersistentVolumes, a.PersistentVolume)
	return pv.Volume, ok
}
