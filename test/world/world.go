// SPDX-License-Identifier: Apache-2.0

package world

import (
	"maps"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// World is everything outside Moorage's own processes. Its methods are serial.
type World struct {
	Objects
	Now time.Time
	// Stamps says that VolumeAttachments are created with the attacher's finalizer, for a driver whose
	// attacher is known to remove it.
	Stamps bool
	// Forgetful has starting kubelets miss staged volumes without a pod's folder, like real ones. No fact
	// in the API shows it: a volume may be at two machines then, with any controller.
	Forgetful bool
	// Mapped has mounts reach their disk after a detach, as with drivers whose unpublish takes nothing
	// away: network storage, for example.
	Mapped bool
	// OlderHolds has the API server drop fields from VolumeHolds that an older definition lacks: the
	// boot, and forced detaches.
	OlderHolds bool

	// Refusals are foreign webhooks' and policies' refusals; the list is replaced, never changed.
	Refusals []Refusal

	Machines map[string]*Machine // by ID, also former machines
	Disks    Disks
	Judge    Judge
}

// New returns an empty world.
func New() *World {
	return &World{
		Objects: newObjects(), Now: Start(), Stamps: true,
		Machines: map[string]*Machine{}, Disks: newDisks(), Judge: newJudge(),
	}
}

// Clone returns an independent copy of w.
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

// At is a volume at a node.
type At struct {
	Volume ledger.VolumeID
	Node   ledger.NodeName
}

// AsKept returns a fact's form after a read from the API: content without room in its object is lost. Nil:
// everything is kept. Tests that may import the API's types set it.
var AsKept func(ledger.Event) ledger.Event

// Put writes an object at a new version; an unchanged object keeps its version.
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

// dated is a Node with the last change of its condition Ready, in whole seconds, as the condition's writer
// keeps it.
func (w *World) dated(old ledger.Event, n ledger.NodeState) ledger.NodeState {
	if was, exists := old.(ledger.NodeState); !exists || was.Ready != n.Ready {
		n.ReadySince = w.Now.Unix()
	}
	return n
}

// Drop deletes an object at once, with its finalizers.
func (w *World) Drop(k Kind, key string) {
	if old := w.Get(k, key); old != nil {
		w.drop(k, key)
		w.Judge.changed(w, old, nil)
	}
}

// DeletePod is a user's deletion of a pod: a bound pod waits for its kubelet.
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

// Touch writes a pod without a relevant change, for example a label or a condition: it gets another
// version.
func (w *World) Touch(uid string) {
	if p, exists := w.Pod(uid); exists {
		w.put(p)
	}
}

// Resolve follows a claim in the API's own objects.
func (w *World) Resolve(key ledger.ClaimKey) (ledger.VolumeID, bool) {
	claim, ok := typed[ledger.Claim](&w.Objects, Claims, key.String())
	if !ok || !claim.Bound {
		return ledger.VolumeID{}, false
	}
	pv, ok := typed[ledger.PersistentVolume](&w.Objects, PersistentVolumes, claim.PersistentVolume)
	return pv.Volume, ok && !pv.Volume.IsZero() && (pv.Claim == ledger.ClaimKey{} || pv.Claim == key)
}

// Needs says whether a volume needs an attachment.
func (w *World) Needs(v ledger.VolumeID) bool {
	d, known := typed[ledger.Driver](&w.Objects, Drivers, v.Driver)
	return !known || d.AttachRequired
}

// VolumesOf lists the volumes of a pod that need an attachment, and says whether all of its claims have
// volumes. Read only.
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

// Exclusive is this package's own reading of access modes: a volume is for one node if any of its
// PersistentVolumes, also a vanished one, says so.
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

// Volumes lists the volumes of all PersistentVolumes.
func (w *World) Volumes() []ledger.VolumeID {
	set := map[ledger.VolumeID]bool{}
	for _, pv := range w.all[PersistentVolumes] {
		set[pv.(ledger.PersistentVolume).Volume] = true
	}
	return SortVolumes(slices.Collect(maps.Keys(set)))
}

// Source is the volume of a VolumeAttachment.
func (w *World) Source(a ledger.Attachment) (ledger.VolumeID, bool) {
	if !a.Inline.IsZero() {
		return a.Inline, true
	}
	pv, ok := typed[ledger.PersistentVolume](&w.Objects, PersistentVolumes, a.PersistentVolume)
	return pv.Volume, ok
}
