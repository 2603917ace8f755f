// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

type Kind uint8

// The kinds are in the order of a starting process's lists.
const (
	Tickets Kind = iota
	Pods
	Claims
	PersistentVolumes
	Classes
	Drivers
	Nodes
	NodeDrivers
	Attachments
	Holds
	Policies
	Kinds
	// Without a running Agent there are no NodeWords.
	NodeWords = Kinds
	// Leases can be read, but not watched.
	Leases = Kinds + 1

	stored = Kinds + 1
)

func AllKinds() []Kind {
	all := make([]Kind, Kinds)
	for k := range all {
		all[k] = Kind(k)
	}
	return all
}

var kindNames = [stored + 1]string{"tickets", "pods", "claims", "pvs", "classes", "drivers", "nodes", "csinodes", "attachments", "holds", "policies", "nodemountreports", "leases"}

func (k Kind) String() string { return kindNames[k] }

func KindOf(name string) (Kind, bool) {
	i := slices.Index(kindNames[:], name)
	return Kind(max(i, 0)), i >= 0
}

type Change struct {
	Kind    Kind
	Key     string
	Version int64
	Fact    ledger.Event // the object; nil: gone
	Old     ledger.Event // the earlier object; nil: new
}

type Objects struct {
	all    [stored]map[string]ledger.Event
	shared [stored]bool     // with a clone: copied before it changes
	sorted [stored][]string // the keys of all, sorted; nil when not known
	// leads are pods' volumes, by UID.
	leads    map[string]leads
	made     map[string]Made                    // VolumeAttachments by UID; also replaced
	deleting map[string]bool                    // pods with a deletionTimestamp, by UID; also replaced
	vanished map[string]ledger.PersistentVolume // vanished PersistentVolumes, by name; also replaced
	version  int64
	changed  [stored]int64 // each kind's newest version
	uids     int64
	Log      []Change
}

type leads struct {
	volumes  []ledger.VolumeID
	complete bool
}

type Made struct {
	At     time.Time
	Beside ledger.NodeName
}

func (o *Objects) Made(uid string) Made { return o.made[uid] }

func newObjects() Objects {
	o := Objects{made: map[string]Made{}, leads: map[string]leads{}}
	for k := range o.all {
		o.all[k] = map[string]ledger.Event{}
	}
	return o
}

func (o *Objects) clone() Objects {
	for k := range o.shared {
		o.shared[k] = true
	}
	c := *o
	c.Log = slices.Clip(o.Log)
	return c
}

func (o *Objects) Version() int64 { return o.version }

func (o *Objects) Changed(k Kind) int64 { return o.changed[k] }

func (o *Objects) UID() string {
	o.uids++
	return fmt.Sprintf("00000000-0000-4000-8000-%012x", o.uids)
}

func (o *Objects) Get(k Kind, key string) ledger.Event { return o.all[k][key] }

// Keys is sorted, and read only.
func (o *Objects) Keys(k Kind) []string {
	if o.sorted[k] == nil && len(o.all[k]) > 0 {
		o.sorted[k] = slices.Sorted(maps.Keys(o.all[k]))
	}
	return o.sorted[k]
}

func (o *Objects) change(k Kind) {
	o.version++
	o.changed[k] = o.version
	if k == Claims || k == PersistentVolumes || k == Drivers {
		o.leads = map[string]leads{}
	}
	if o.shared[k] {
		o.all[k], o.shared[k] = maps.Clone(o.all[k]), false
	}
}

func (o *Objects) List(k Kind) []ledger.Event {
	list := make([]ledger.Event, 0, len(o.all[k]))
	for _, key := range o.Keys(k) {
		list = append(list, o.all[k][key])
	}
	return list
}

func typed[T ledger.Event](o *Objects, k Kind, key string) (T, bool) {
	t, ok := o.all[k][key].(T)
	return t, ok
}

func (o *Objects) Pod(uid string) (ledger.Pod, bool) { return typed[ledger.Pod](o, Pods, uid) }

func (o *Objects) Deleting(uid string) bool { return o.deleting[uid] }

func (o *Objects) Node(n ledger.NodeName) (ledger.NodeState, bool) {
	return typed[ledger.NodeState](o, Nodes, string(n))
}

func (o *Objects) Attachment(name string) (ledger.Attachment, bool) {
	return typed[ledger.Attachment](o, Attachments, name)
}

func (o *Objects) Ticket(id ledger.TicketID) (ledger.Ticket, bool) {
	return typed[ledger.Ticket](o, Tickets, id.String())
}

func (o *Objects) Hold(v ledger.VolumeID) (ledger.Hold, bool) {
	h, ok := typed[ledger.HoldSeen](o, Holds, v.String())
	return h.Hold, ok
}

// Holder is the node with an exclusive volume by its VolumeHold, else by the newest note of a
// VolumeAttachment; empty: none.
func (w *World) Holder(v ledger.VolumeID) ledger.NodeName {
	if h, exists := w.Hold(v); exists {
		return h.Node
	}
	var newest ledger.Attachment
	for _, e := range w.all[Attachments] {
		a := e.(ledger.Attachment)
		if at, _ := w.Attaches(a); at == v && a.Note != (ledger.Note{}) && a.Transitions > newest.Transitions {
			newest = a
		}
	}
	return newest.Node
}

func (o *Objects) Drivers(n ledger.NodeName) (ledger.NodeDrivers, bool) {
	return typed[ledger.NodeDrivers](o, NodeDrivers, string(n))
}

func (o *Objects) PodsAt(n ledger.NodeName) []ledger.Pod {
	var list []ledger.Pod
	for _, key := range o.Keys(Pods) {
		if p, _ := o.Pod(key); p.Node == n {
			list = append(list, p)
		}
	}
	return list
}

func (o *Objects) put(e ledger.Event) ledger.Event {
	k, key := Identify(e)
	o.change(k)
	e = versioned(e, strconv.FormatInt(o.version, 10))
	old, exists := o.all[k][key]
	if !exists {
		o.sorted[k] = nil
	}
	o.Log = append(o.Log, Change{k, key, o.version, e, old})
	o.all[k][key] = e
	return e
}

func (o *Objects) drop(k Kind, key string) bool {
	old, ok := o.all[k][key]
	if !ok {
		return false
	}
	o.change(k)
	delete(o.all[k], key)
	o.sorted[k] = nil
	if k == Pods {
		o.deleting = without(o.deleting, key)
	}
	o.Log = append(o.Log, Change{k, key, o.version, nil, old})
	return true
}

func Start() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

func TicketKey(key string) ledger.TicketID {
	namespace, name, _ := strings.Cut(key, "/")
	return ledger.TicketID{Namespace: namespace, Name: name}
}
