// SPDX-License-Identifier: Apache-2.0

package tickets

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

const (
	// keepFor is how long a freed volume or slot is kept for a pod.
	keepFor = time.Minute
	// unseenFor is how long a pod that the ledger lacks counts as waiting.
	unseenFor = 10 * time.Second
)

// Ask is a ticket that must yield: it alone keeps a pod from a node.
type Ask struct {
	Ticket ledger.TicketID
	UID    string // the ticket's
	Node   ledger.NodeName
}

// Asks are the tickets that alone keep a pod from a node.
func Asks(a rules.Arbiter, s ledger.Snapshot, r rules.Request, n ledger.NodeName, now time.Time) []Ask {
	var list []Ask
	for _, id := range a.Yielding(s, r, n, now) {
		if t := s.Ticket(id); t != nil {
			list = append(list, Ask{id, t.UID, n})
		}
	}
	return list
}

// Waits are the pods that a scheduler could not place because of their volumes, until they have a node or
// are deleted. Safe for parallel use. The zero value is ready.
type Waits struct {
	mu     sync.Mutex
	pods   map[string]*wait // by UID
	notify func(nodes []ledger.NodeName, tickets []ledger.TicketID)
}

type wait struct {
	pod   ledger.Pod
	noted time.Time // the first note
	nodes map[ledger.NodeName]bool
	asks  []Ask
	// kept is since when something free is kept for the pod; zero: nothing. It continues across notes,
	// until a ticket gets something that the pod needs.
	kept time.Time
}

func (k *wait) lapsed(now time.Time) bool { return !k.kept.IsZero() && now.Sub(k.kept) >= keepFor }

func (w *Waits) subscribe(f func([]ledger.NodeName, []ledger.TicketID)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notify = f
}

// Note records a refused pod, with the nodes where it waits for slots and the tickets that alone block it.
// It replaces an earlier note.
func (w *Waits) Note(now time.Time, pod ledger.Pod, nodes []ledger.NodeName, asks []Ask) {
	w.mu.Lock()
	k := w.pods[pod.UID]
	if k == nil {
		if w.pods == nil {
			w.pods = map[string]*wait{}
		}
		k = &wait{noted: now}
		w.pods[pod.UID] = k
	}
	k.pod, k.asks, k.nodes = pod, asks, map[ledger.NodeName]bool{}
	for _, n := range nodes {
		k.nodes[n] = true
	}
	notify := w.notify
	w.mu.Unlock()
	if notify != nil && len(asks) > 0 {
		var ids []ledger.TicketID
		for _, ask := range asks {
			ids = append(ids, ask.Ticket)
		}
		notify(nil, ids)
	}
}

// Len is the number of waiting pods.
func (w *Waits) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pods)
}

// A reserved pod does not wait, but may again.
func (k *wait) waiting(s ledger.Snapshot, now time.Time) (pod *ledger.Pod, over bool) {
	pod = s.Pod(k.pod.UID)
	switch {
	case pod == nil && now.Sub(k.noted) < unseenFor:
		unseen := k.pod // a copy: Note may write another
		return &unseen, false
	case pod == nil, pod.Phase != ledger.PodLive, pod.Node != "" && !pod.Reserved:
		return nil, true
	case pod.Node != "":
		return nil, false
	}
	return pod, false
}

func (w *Waits) line(s ledger.Snapshot, now time.Time) []rules.Waiter {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []rules.Waiter
	for _, k := range w.pods {
		if pod, _ := k.waiting(s, now); pod != nil && !k.lapsed(now) {
			list = append(list, rules.Waiter{Request: rules.PodRequest(s, pod), Nodes: k.nodes})
		}
	}
	return list
}

// decided notes the pods with something kept. A granted ticket's volumes and slots are no longer kept, and
// the pod's time begins anew with the next free one. It returns when the first time ends; 0: none runs.
func (w *Waits) decided(s ledger.Snapshot, l *rules.Line, granted []*ledger.Ticket, now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := time.Duration(0)
	for uid, k := range w.pods {
		if l.Kept(uid) && k.kept.IsZero() {
			k.kept = now
		}
		if k.lapsed(now) && slices.ContainsFunc(granted, func(t *ledger.Ticket) bool { return k.needs(s, t) }) {
			k.kept = time.Time{}
		}
		if left := keepFor - now.Sub(k.kept); !k.kept.IsZero() && left > 0 && (next == 0 || left < next) {
			next = left
		}
	}
	return next
}

func (k *wait) needs(s ledger.Snapshot, t *ledger.Ticket) bool {
	if k.nodes[t.Node] {
		return true
	}
	at := s.TicketAt(t.ID)
	return slices.ContainsFunc(rules.PodRequest(s, &k.pod).Needs, func(n rules.Need) bool {
		return !n.Volume.IsZero() && slices.Contains(at, n.Volume)
	})
}

func (w *Waits) asked(a rules.Arbiter, s ledger.Snapshot, t *ledger.Ticket, now time.Time) []rules.Reason {
	if !t.Type.Yields() || t.Phase != ledger.TicketGranted {
		return nil
	}
	w.mu.Lock()
	var pods []*ledger.Pod
	var nodes []ledger.NodeName
	for _, k := range w.pods {
		for _, ask := range k.asks {
			if pod, _ := k.waiting(s, now); ask.Ticket == t.ID && ask.UID == t.UID && pod != nil {
				pods, nodes = append(pods, pod), append(nodes, ask.Node)
			}
		}
	}
	w.mu.Unlock()
	var reasons []rules.Reason
	for i, pod := range pods {
		r := rules.PodRequest(s, pod)
		if n := s.Node(nodes[i]); n == nil || !n.Exists || n.Draining || !slices.Contains(a.Yielding(s, r, n.Name, now), t.ID) {
			continue
		}
		reason := rules.Reason{Code: rules.Outranked, Node: nodes[i], Who: r.Who}
		for _, need := range r.Needs {
			if !need.Volume.IsZero() && slices.Contains(s.TicketAt(t.ID), need.Volume) {
				reason.Volume, reason.Claim = need.Volume, need.Name
				break
			}
		}
		reasons = append(reasons, reason)
	}
	return reasons
}

func (w *Waits) touched(s ledger.Snapshot, uids []string, now time.Time) (nodes []ledger.NodeName, volumes []ledger.VolumeID, asks []ledger.TicketID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, uid := range uids {
		k := w.pods[uid]
		if k == nil {
			continue
		}
		if _, over := k.waiting(s, now); !over {
			continue
		}
		nodes = slices.AppendSeq(nodes, maps.Keys(k.nodes))
		for _, need := range rules.PodRequest(s, &k.pod).Needs {
			volumes = append(volumes, need.Volume)
		}
		for _, ask := range k.asks {
			asks = append(asks, ask.Ticket)
		}
		delete(w.pods, uid)
	}
	return nodes, volumes, asks
}

func (w *Waits) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.pods))
}
