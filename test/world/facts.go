// SPDX-License-Identifier: Apache-2.0

package world

import (
	"fmt"
	"strconv"

	"github.com/moorage-dev/moorage/internal/ledger"
)

type form struct {
	key, version func(ledger.Event) string
	uid          func(ledger.Event) string // nil: the ledger keeps none
	versioned    func(ledger.Event, string) ledger.Event
	gone         func(ledger.Event) ledger.Event
}

func formOf[T ledger.Event](key func(T) string, version func(*T) *string, uid func(T) string, gone func(T) ledger.Event) form {
	f := form{
		key:     func(e ledger.Event) string { return key(e.(T)) },
		version: func(e ledger.Event) string { t := e.(T); return *version(&t) },
		versioned: func(e ledger.Event, v string) ledger.Event {
			t := e.(T)
			*version(&t) = v
			return t
		},
		gone: func(e ledger.Event) ledger.Event { return gone(e.(T)) },
	}
	if uid != nil {
		f.uid = func(e ledger.Event) string { return uid(e.(T)) }
	}
	return f
}

var forms = [stored]form{
	Tickets: formOf(func(t ledger.Ticket) string { return t.ID.String() }, func(t *ledger.Ticket) *string { return &t.Version },
		func(t ledger.Ticket) string { return t.UID }, func(t ledger.Ticket) ledger.Event { return ledger.TicketGone{ID: t.ID} }),
	Pods: formOf(func(p ledger.Pod) string { return p.UID }, func(p *ledger.Pod) *string { return &p.Version },
		nil, func(p ledger.Pod) ledger.Event { return ledger.PodGone{UID: p.UID} }),
	Claims: formOf(func(c ledger.Claim) string { return c.Key.String() }, func(c *ledger.Claim) *string { return &c.Version },
		nil, func(c ledger.Claim) ledger.Event { return ledger.ClaimGone{Key: c.Key} }),
	PersistentVolumes: formOf(func(p ledger.PersistentVolume) string { return p.Name }, func(p *ledger.PersistentVolume) *string { return &p.Version },
		nil, func(p ledger.PersistentVolume) ledger.Event { return ledger.PersistentVolumeGone{Name: p.Name} }),
	Classes: formOf(func(c ledger.StorageClass) string { return c.Name }, func(c *ledger.StorageClass) *string { return &c.Version },
		nil, func(c ledger.StorageClass) ledger.Event { return ledger.StorageClassGone{Name: c.Name} }),
	Drivers: formOf(func(d ledger.Driver) string { return d.Name }, func(d *ledger.Driver) *string { return &d.Version },
		nil, func(d ledger.Driver) ledger.Event { return ledger.DriverGone{Name: d.Name} }),
	Nodes: formOf(func(n ledger.NodeState) string { return string(n.Name) }, func(n *ledger.NodeState) *string { return &n.Version },
		func(n ledger.NodeState) string { return n.UID }, func(n ledger.NodeState) ledger.Event { return ledger.NodeGone{Name: n.Name} }),
	NodeDrivers: formOf(func(n ledger.NodeDrivers) string { return string(n.Node) }, func(n *ledger.NodeDrivers) *string { return &n.Version },
		nil, func(n ledger.NodeDrivers) ledger.Event { return ledger.NodeDriversGone{Node: n.Node} }),
	Attachments: formOf(func(a ledger.Attachment) string { return a.Name }, func(a *ledger.Attachment) *string { return &a.Version },
		func(a ledger.Attachment) string { return a.UID }, func(a ledger.Attachment) ledger.Event { return ledger.AttachmentGone{Name: a.Name} }),
	Holds: formOf(func(h ledger.HoldSeen) string { return h.Volume.String() }, func(h *ledger.HoldSeen) *string { return &h.Hold.Version },
		nil, func(h ledger.HoldSeen) ledger.Event { return ledger.HoldGone{Volume: h.Volume} }),
	Policies: formOf(func(p ledger.Policy) string { return p.Name }, func(p *ledger.Policy) *string { return &p.Version },
		nil, func(p ledger.Policy) ledger.Event { return ledger.PolicyGone{Name: p.Name} }),
	NodeWords: formOf(func(w ledger.NodeWord) string { return string(w.Node) }, func(w *ledger.NodeWord) *string { return &w.Version },
		func(w ledger.NodeWord) string { return w.UID }, func(w ledger.NodeWord) ledger.Event { return ledger.NodeWordGone{Node: w.Node} }),
}

func kindOfFact(e ledger.Event) Kind {
	switch e.(type) {
	case ledger.Ticket:
		return Tickets
	case ledger.Pod:
		return Pods
	case ledger.Claim:
		return Claims
	case ledger.PersistentVolume:
		return PersistentVolumes
	case ledger.StorageClass:
		return Classes
	case ledger.Driver:
		return Drivers
	case ledger.NodeState:
		return Nodes
	case ledger.NodeDrivers:
		return NodeDrivers
	case ledger.Attachment:
		return Attachments
	case ledger.HoldSeen:
		return Holds
	case ledger.Policy:
		return Policies
	case ledger.NodeWord:
		return NodeWords
	}
	panic(fmt.Sprintf("not an object: %T", e))
}

func Identify(e ledger.Event) (Kind, string) {
	k := kindOfFact(e)
	return k, forms[k].key(e)
}

func versioned(e ledger.Event, v string) ledger.Event { return forms[kindOfFact(e)].versioned(e, v) }

func VersionOf(e ledger.Event) int64 {
	n, _ := strconv.ParseInt(forms[kindOfFact(e)].version(e), 10, 64)
	return n
}

// UIDOf is the key if the ledger keeps no UID.
func UIDOf(e ledger.Event) string {
	f := forms[kindOfFact(e)]
	if f.uid == nil {
		return f.key(e)
	}
	return f.uid(e)
}

func Gone(e ledger.Event) ledger.Event { return forms[kindOfFact(e)].gone(e) }
