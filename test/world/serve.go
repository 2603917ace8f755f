// SPDX-License-Identifier: Apache-2.0

package world

import (
	"reflect"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func (w *World) Serve(r Request) Answer {
	a := w.serve(r)
	a.At = w.version
	return a
}

func (w *World) serve(r Request) Answer {
	if w.refuses(r) {
		return Answer{Code: Forbidden}
	}
	switch r.Do {
	case GetObject:
		if r.Kind == Leases {
			return w.lease(ledger.NodeName(r.Key))
		}
		if e := w.Get(r.Kind, r.Key); e != nil {
			return answer(e)
		}
		return Answer{Code: NotFound}
	case ListObjects:
		return answer(w.list(r.Kind, r.Key)...)
	case ListPods:
		var list []ledger.Event
		for _, p := range w.PodsAt(r.Node) {
			list = append(list, p)
		}
		return answer(list...)
	case PutHold, DropHold:
		return w.serveHold(r)
	case CreateAttachment, ConfirmAttachment, MarkWanted, DropAttachment:
		return w.serveAttachment(r)
	case PatchNode:
		return w.patchNode(r)
	case DecideTicket, DropTicket:
		return w.serveTicket(r)
	case RemovePod, BindPod, FinishPod:
		return w.servePod(r)
	case AskNode:
		return w.askNode(r)
	case ReportUse:
		return w.reportUse(r)
	case WriteReported:
		return w.writeReported(r)
	case StampAttachment, MarkAttached, MarkDetached:
		return w.serveAttacher(r)
	}
	w.Judge.fault("nobody knows how to do request %d, %q", r.Do, r.Key)
	return Answer{Code: Invalid}
}

func (w *World) list(k Kind, namespace string) []ledger.Event {
	return slices.DeleteFunc(w.List(k), func(e ledger.Event) bool {
		claim, is := e.(ledger.Claim)
		return is && claim.Key.Namespace != namespace
	})
}

func (w *World) serveHold(r Request) Answer {
	old, exists := w.Hold(r.Volume)
	switch {
	case !exists && r.Version != "":
		return Answer{Code: NotFound}
	case exists && r.Version == "":
		return Answer{Code: Exists}
	case exists && old.Version != r.Version:
		return Answer{Code: Conflict}
	case r.Do == DropHold:
		w.Drop(Holds, r.Volume.String())
		return Answer{}
	}
	if h, ok := r.Fact.(ledger.HoldSeen); ok && w.OlderHolds {
		h.Hold.BootID, h.Hold.Fences = "", nil
		return answer(w.Put(h))
	}
	return answer(w.Put(r.Fact))
}

func (w *World) serveAttachment(r Request) Answer {
	if r.Do == CreateAttachment {
		a := r.Fact.(ledger.Attachment)
		if _, exists := w.Attachment(a.Name); exists {
			return Answer{Code: Exists}
		}
		a.UID = w.UID()
		w.made = with(w.made, a.UID, Made{At: w.Now.Truncate(time.Second), Beside: r.Node})
		a.Stamped = r.Stamp
		if r.Manager {
			w.Judge.theirs = without(w.Judge.theirs, w.place(a))
		} else {
			w.Judge.creates(w, a)
		}
		return answer(w.Put(a))
	}
	a, exists := w.Attachment(r.Key)
	if !exists {
		return Answer{Code: NotFound}
	}
	if r.Do == ConfirmAttachment || r.Do == MarkWanted {
		if a.UID != r.UID {
			return Answer{Code: Conflict}
		}
		a.Wanted = a.Wanted || r.Do == MarkWanted
		a.Confirmed = a.Confirmed || r.Do == ConfirmAttachment
		return answer(w.put(a)) // a new value: always a new version
	}
	if r.UID != "" && r.UID != a.UID || r.Version != "" && r.Version != a.Version {
		return Answer{Code: Conflict}
	}
	if a.Deleting {
		return Answer{}
	}
	if r.Manager {
		w.Judge.theirs = with(w.Judge.theirs, w.place(a), true)
	} else {
		w.Judge.deletes(w, a, r.Since)
	}
	w.delete(a)
	return Answer{}
}

func (w *World) place(a ledger.Attachment) At {
	v, _ := w.Source(a)
	return At{v, a.Node}
}

func (w *World) delete(a ledger.Attachment) {
	if !a.Stamped {
		w.Drop(Attachments, a.Name)
		return
	}
	a.Deleting, a.DeletedAt = true, w.Now.Unix()
	w.Put(a)
}

func (w *World) serveAttacher(r Request) Answer {
	a, exists := w.Attachment(r.Key)
	if !exists || a.UID != r.UID {
		return Answer{Code: NotFound} // its patches name no UID, but an attacher works on one object
	}
	switch r.Do {
	case StampAttachment:
		if r.TestsID && a.NodeID != r.WasID {
			return Answer{Code: Conflict}
		}
		a.Stamped, a.NodeID = true, r.NodeID
	case MarkAttached:
		a.Attached, a.AttachError = a.Attached || r.Error.IsZero(), r.Error
	case MarkDetached:
		if r.Error.IsZero() {
			w.Drop(Attachments, a.Name)
			return Answer{}
		}
		a.DetachError = r.Error
	}
	return answer(w.Put(a))
}

func (w *World) Stamped(name string) bool {
	a, _ := w.Attachment(name)
	return a.Stamped
}

func (w *World) serveTicket(r Request) Answer {
	t, exists := w.Ticket(TicketKey(r.Key))
	switch {
	case !exists:
		return Answer{Code: NotFound}
	case r.UID != "" && t.UID != r.UID, r.Version != "" && t.Version != r.Version:
		return Answer{Code: Conflict}
	case r.Do == DropTicket:
		w.Drop(Tickets, r.Key)
		return Answer{}
	}
	if r.EpochOnly {
		t.Epoch = max(t.Epoch, r.Epoch)
		return answer(w.Put(t))
	}
	if made, is := r.Fact.(ledger.Ticket); is { // the status as its writer has made it (protocol.Write)
		t.Epoch, t.SatisfiedSince = max(t.Epoch, r.Epoch), made.SatisfiedSince
		return answer(w.Put(t))
	}
	w.Judge.interrupts(w, t, r)
	if r.Node != "" {
		w.Judge.places(t, r)
		t.Node = r.Node
	}
	if r.Phase == ledger.TicketGranted && t.Phase != ledger.TicketGranted {
		w.Judge.grants(w, t, r)
	}
	t.LetsGo = t.LetsGo && r.YieldingSince == t.YieldingSince // it answers one request, and no later one
	t.Phase, t.Epoch, t.Interruptions, t.YieldingSince = r.Phase, max(t.Epoch, r.Epoch), r.Interruptions, r.YieldingSince
	if t.Reason = r.Reason; r.Phase == ledger.TicketGranted {
		t.Reason, t.Granted = "", r.Granted // another condition names the claimants of its volumes
	} else {
		t.SatisfiedSince, t.Granted = 0, nil
	}
	return answer(w.Put(t))
}

func (w *World) servePod(r Request) Answer {
	p, exists := w.Pod(r.UID)
	switch {
	case !exists:
		return Answer{Code: NotFound}
	case r.Version != "" && r.Version != p.Version:
		return Answer{Code: Conflict}
	}
	switch r.Do {
	case RemovePod:
		w.Drop(Pods, p.UID)
		return Answer{}
	case BindPod:
		if p.Node != "" || p.Phase != ledger.PodLive {
			return Answer{Code: Conflict}
		}
		w.Judge.binds(w, p, r.Node, r)
		p.Node = r.Node
	case FinishPod:
		p.Phase = ledger.PodFinished
	}
	return answer(w.Put(p))
}

func (w *World) reportUse(r Request) Answer {
	n, exists := w.Node(r.Node)
	if !exists {
		return Answer{Code: NotFound}
	}
	n.Ready, n.Reporting = ledger.ReadyTrue, true
	n.SystemUUID, n.BootID = r.SystemUUID, r.BootID
	n.Fenced = nil // earlier conditions are older than the kubelet's report of Ready
	if r.NotReady {
		n.Ready = ledger.ReadyFalse
	}
	if !r.Same {
		n.InUse = append([]ledger.VolumeID(nil), r.InUse...)
	}
	return answer(w.Put(n))
}

func (w *World) writeReported(r Request) Answer {
	n, exists := w.Node(r.Node)
	if !exists {
		return Answer{} // no error to kube-controller-manager
	}
	n.Reported = append([]ledger.VolumeID(nil), r.InUse...)
	return answer(w.Put(n))
}

func equal(a, b ledger.Event) bool {
	return reflect.DeepEqual(versioned(a, ""), versioned(b, ""))
}

func (w *World) Stamp(name string) {
	a, _ := w.Attachment(name)
	a.Stamped = true
	w.Put(a)
}
