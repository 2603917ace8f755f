// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"fmt"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Bind is the task that binds a pod by a reservation without a VolumeTicket
// (arbiter.BindAtOnce), which the ledger has taken in. version is the pod's as whoever asks
// for the bind knows it: once somebody has changed or fenced the pod, the bind fails whenever it
// arrives. It ends Finished when the pod is bound; Stale when a read after a conflict shows that the pod has
// changed, or is gone; Failed when it is not bound for another reason, or nobody
// knows whether it is: then the reservation counts on, and Due says what is next.
func Bind(r *ledger.Ticket, version string) Task {
	return Task{Ticket: r, Commit: Request{
		Do: BindPod, Key: podKey(r), UID: r.Pod, Node: r.Node,
		Version: version, //mutant:bind-any-version
	}}
}

// Settle is the task that ends a reservation whose bind was not answered: it reads the pod,
// and fences one that is not bound. What comes later of the bind fails then.
func Settle(r *ledger.Ticket) Task {
	return Task{Ticket: r, Commit: Request{Do: FencePod, Key: podKey(r), UID: r.Pod}}
}

// fence is the task of a take-over that keeps older processes from binding a pod.
func fence(p *ledger.Pod) Task {
	return Settle(&ledger.Ticket{ID: ledger.BindID(p.Namespace, p.UID), Type: ledger.TypePod, Pod: p.UID, PodName: p.Name})
}

func podKey(t *ledger.Ticket) string {
	return ledger.TicketID{Namespace: t.ID.Namespace, Name: t.PodName}.String()
}

// advanceBind makes the next request of a task about the bind of a pod.
func (m *Memory) advanceBind(t Task, s ledger.Snapshot) (Task, Move) {
	if t.Commit.Do == FencePod {
		if t.Sent.Do == FencePod {
			t.Outlasted = true
		}
		return t.send(readPod(t.Ticket))
	}
	if now := s.Ticket(t.Ticket.ID); now == nil || now.Node != t.Ticket.Node {
		return t.end(Stale, fmt.Sprintf("pod %s is bound or gone", t.Commit.Key))
	}
	return t.send(t.Commit)
}

// bindAnswered follows the requests of a task about the bind of a pod. The ledger ends the
// reservation of a pod that an answer shows bound.
func (m *Memory) bindAnswered(t Task, a Answer, now time.Time) (Task, Move) {
	switch {
	case t.Sent.Do == GetObject:
		return m.podRead(t, a)
	case a.Result == Done:
		if t.Sent.Do == BindPod {
			return t.end(Finished, "") // it counts until the pod is seen bound
		}
		return m.fencedNow(t)
	case a.Result == NotFound && t.Sent.Do == BindPod:
		return t.end(Stale, fmt.Sprintf("pod %s is gone", t.Commit.Key), ledger.PodGone{UID: t.Ticket.Pod}, released(t))
	case a.Result == NotFound:
		return m.podGone(t)
	case a.Result == Conflict && t.Sent.Do == FencePod:
		return t.end(Stale, fmt.Sprintf("pod %s has changed", t.Commit.Key))
	case a.Result == Refused && t.Sent.Do == FencePod:
		// Somebody's rule refuses the write. What is left is time.
		return m.outlast(t, now)
	case t.Sent.Do == FencePod:
		return t.fail(a)
	case a.Result == Conflict || a.Result == Exists:
		// The pod has changed; or the storage of the API server has failed in a way that it has no
		// word for, and the bind may be carried out (pkg/registry/core/pod/storage, assignPod).
		return t.send(readPod(t.Ticket)) //mutant:conflict-proves
	case a.Result == Unknown:
		return t.fail(a, ledger.BindLost{ID: t.Ticket.ID}) //mutant:bind-lost
	default:
		return t.fail(a, released(t))
	}
}

// podRead follows the read of a pod whose bind was not answered, or may be under way.
func (m *Memory) podRead(t Task, a Answer) (Task, Move) {
	if t.Commit.Do == BindPod {
		return m.conflictRead(t, a)
	}
	pod, found := first[ledger.Pod](a)
	switch {
	case a.Result == NotFound:
		return m.podGone(t)
	case !found:
		return t.fail(a)
	case pod.Node != "":
		m.fenced.add(t.Ticket.Pod)
		return t.end(Finished, "")
	case t.Outlasted:
		return m.fencedNow(t)
	case m.Clean && t.Ticket.Node == "":
		// Of a take-over: the leader before has nothing under way.
		m.fenced.add(t.Ticket.Pod)
		return t.end(Finished, "")
	}
	t.Commit.Version = pod.Version
	return t.send(t.Commit)
}

// conflictRead follows the read of a pod whose bind was answered with a conflict. One that has another version
// than the bind asks for won't be bound by it, whenever it arrives.
func (m *Memory) conflictRead(t Task, a Answer) (Task, Move) {
	pod, found := first[ledger.Pod](a)
	switch {
	case a.Result == NotFound:
		return t.end(Stale, fmt.Sprintf("pod %s is gone", t.Commit.Key), ledger.PodGone{UID: t.Ticket.Pod}, released(t))
	case found && pod.Node == t.Ticket.Node:
		return t.end(Finished, "")
	case found && pod.Node != "":
		return t.end(Stale, fmt.Sprintf("pod %s is bound to %s", t.Commit.Key, pod.Node))
	case found && t.Commit.Version != "" && pod.Version != t.Commit.Version:
		return t.end(Stale, fmt.Sprintf("pod %s has changed", t.Commit.Key), released(t))
	}
	return t.end(Failed, fmt.Sprintf("nobody knows whether pod %s is bound", t.Commit.Key), ledger.BindLost{ID: t.Ticket.ID})
}

// fencedNow ends a task: the pod is not bound, and nothing that was sent before can bind it.
func (m *Memory) fencedNow(t Task) (Task, Move) {
	m.fenced.add(t.Ticket.Pod)
	return t.end(Finished, "", released(t))
}

func (m *Memory) podGone(t Task) (Task, Move) {
	m.fenced.add(t.Ticket.Pod)
	return t.end(Finished, "", ledger.PodGone{UID: t.Ticket.Pod}, released(t))
}

func released(t Task) ledger.Event { return ledger.TicketReleased{ID: t.Ticket.ID} }
