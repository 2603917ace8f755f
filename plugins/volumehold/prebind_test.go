// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/plugins/internal/reservation"
)

// waitingInPreBind is a pod whose claim was not bound when it was granted n1.
func waitingInPreBind(t *testing.T, timeout time.Duration) (*rig, *corev1.Pod, <-chan *fwk.Status) {
	t.Helper()
	r := newRig(t, pending("data")...)
	pod := podWith("p", "data")
	r.known(pod)
	c := r.granted(pod, "n1")
	if status := r.RunPreBindPreFlights(t.Context(), c.state, pod, "n1"); !status.IsSuccess() || c.state.GetParallelPreBindPlugins().Has(Name) {
		t.Fatalf("PreBind is skipped, or runs beside VolumeBinding's: %v", status)
	}
	r.apply(ledger.Policy{Name: "p", Driver: driver, GrantTimeout: timeout})
	done := make(chan *fwk.Status, 1)
	go func() { done <- r.RunPreBindPlugins(t.Context(), c.state, pod, "n1") }()
	return r, pod, done
}

// bindClaim is what VolumeBinding and the provisioner do.
func bindClaim(r *rig) {
	r.apply(disk("data", ledger.AccessNode)...)
}

func TestPreBindWaitsForTheVolumeThatTheClaimBecame(t *testing.T) {
	r, pod, done := waitingInPreBind(t, 10*time.Minute)
	bindClaim(r)
	eventually(t, "PreBind to look again", func() bool { return len(r.plugin.core.book.Of(string(pod.UID)).News()) == 0 })
	select {
	case status := <-done:
		t.Fatalf("bound before the controller granted the volume: %v", status)
	default:
	}
	r.apply(ledger.HoldSeen{Volume: volume("data"), Hold: ledger.Hold{Version: "1", Node: "n2"}})
	r.apply(ledger.HoldSeen{Volume: volume("data"), Hold: ledger.Hold{Version: "2", Node: "n1"}})
	if status := <-done; !status.IsSuccess() {
		t.Errorf("the volume is granted at n1, and PreBind says %v", status)
	}
}

func TestPreBindEndsWithThePod(t *testing.T) {
	r, pod, done := waitingInPreBind(t, 10*time.Minute)
	r.apply(factOf(terminating(pod)))
	if status := <-done; !errors.Is(status.AsError(), reservation.ErrPodGone) {
		t.Errorf("the pod is being deleted, and PreBind says %v", status)
	}
}

func TestPreBindEndsWithTheReservation(t *testing.T) {
	r, pod, done := waitingInPreBind(t, 10*time.Minute)
	r.apply(ledger.TicketGone{ID: ticketID(pod)})
	if status := <-done; !errors.Is(status.AsError(), reservation.ErrEnded) {
		t.Errorf("the ticket was deleted, and PreBind says %v", status)
	}
}

// A grant can lead nowhere: the driver found no room. The pod goes elsewhere.
func TestPreBindEndsWhenTheGrantIsTakenBack(t *testing.T) {
	r, pod, done := waitingInPreBind(t, 10*time.Minute)
	r.decide(pod, metav1.ConditionFalse, "driver disk.example.com has no room")
	if status := <-done; !errors.Is(status.AsError(), reservation.ErrRefused) || !strings.Contains(status.Message(), "has no room") {
		t.Errorf("the grant was taken back, and PreBind says %v", status)
	}
	if status := r.filter(pod, "n1"); status.Message() != "node(s) refused: driver disk.example.com has no room" {
		t.Errorf("at the same node again: %v", status)
	}
}

func TestPreBindIsBounded(t *testing.T) {
	_, _, done := waitingInPreBind(t, time.Nanosecond)
	if status := <-done; status.Code() != fwk.Error || !strings.Contains(status.Message(), "claim data is not bound yet: still so after 1ns") {
		t.Errorf("PreBind says %v", status)
	}
}

// While an attach waits for its turn among those that a policy lets the driver do at once, the time does not run:
// the pod would give up its node, and what was attached for it would be detached, and attached again. From
// when it has begun, or where no policy limits the driver, or something else is in the way, it runs.
func TestPreBindWaitsForAWorker(t *testing.T) {
	begun := ledger.Attachment{Name: ledger.AttachmentName(volume("data"), "n1"), UID: "va", Version: "1", Driver: driver, Node: "n1", PersistentVolume: "pv-data", Ours: true}
	attached := begun
	attached.Version, attached.Attached = "2", true
	for name, test := range map[string]struct {
		workers int
		begun   []ledger.Event
		bound   bool
	}{
		"it has not begun":             {1, nil, true},
		"it has begun":                 {1, []ledger.Event{begun}, false},
		"as many as there are may be":  {0, nil, false},
		"its driver has left the node": {1, []ledger.Event{ledger.NodeDrivers{Node: "n1"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			policy := ledger.Policy{Name: "p", Version: "1", Driver: driver, BindAfterAttached: true, Workers: test.workers}
			r := newRig(t, all(disk("data", ledger.AccessNode), one(policy, ledger.HoldSeen{Volume: volume("data"), Hold: ledger.Hold{Version: "1", Node: "n1"}}))...)
			pod := podWith("p", "data")
			r.known(pod)
			c := r.granted(pod, "n1")
			r.RunPreBindPreFlights(t.Context(), c.state, pod, "n1")
			policy.Version, policy.GrantTimeout = "2", time.Nanosecond // it is over at once
			r.apply(policy)
			r.apply(test.begun...)
			done := make(chan *fwk.Status, 1)
			go func() { done <- r.RunPreBindPlugins(t.Context(), c.state, pod, "n1") }()
			if !test.bound {
				if status := <-done; !strings.Contains(status.Message(), "still so after 1ns") {
					t.Errorf("PreBind says %v", status)
				}
				return
			}
			r.apply(ledger.HoldSeen{Volume: volume("data"), Hold: ledger.Hold{Version: "2", Node: "n1"}})
			eventually(t, "PreBind to look again", func() bool {
				return len(done) > 0 || len(r.plugin.core.book.Of(string(pod.UID)).News()) == 0
			})
			r.apply(attached)
			if status := <-done; !status.IsSuccess() {
				t.Errorf("PreBind says %v", status)
			}
		})
	}
}

// A ticket that is asked to let go of the pod's volume first has its time for that, whatever the
// scheduler's own limit is: else the pod would give up each time before it gets the volume.
func TestPreBindWaitsForATicketThatYields(t *testing.T) {
	notice := 10 * time.Minute
	policy := ledger.Policy{Name: "p", Driver: driver, BindAfterAttached: true, YieldNotice: &notice}
	backup := ledger.Ticket{ID: ledger.TicketID{Namespace: "default", Name: "nightly"}, UID: "nightly", Version: "1", Type: ledger.TypeBackup, Node: "n2",
		Phase: ledger.TicketGranted, SatisfiedSince: 1, Volumes: []ledger.TicketVolume{{Claim: "data"}}}
	r := newRig(t, all(disk("data", ledger.AccessNode), one(policy, ledger.HoldSeen{Volume: volume("data"), Hold: ledger.Hold{Version: "1", Node: "n1"}}))...)
	pod := podWith("p", "data")
	backup.ID.Namespace = pod.Namespace
	r.apply(backup)
	r.known(pod)
	c := r.granted(pod, "n1")
	r.RunPreBindPreFlights(t.Context(), c.state, pod, "n1")
	policy.Version, policy.GrantTimeout = "2", time.Nanosecond
	r.apply(policy)
	done := make(chan *fwk.Status, 1)
	go func() { done <- r.RunPreBindPlugins(t.Context(), c.state, pod, "n1") }()
	r.apply(ledger.Attachment{
		Name: ledger.AttachmentName(volume("data"), "n1"), UID: "va", Version: "1", Driver: driver, Node: "n1", PersistentVolume: "pv-data", Ours: true, Attached: true,
	}, ledger.NodeState{Name: "n1", UID: "n1", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true, Reported: []ledger.VolumeID{volume("data")}})
	if status := <-done; !status.IsSuccess() {
		t.Errorf("PreBind says %v", status)
	}
}

// A ticket with parameters that has the pod's volume at its own node has to let go of it first,
// also one that was granted after the node was chosen.
func TestPreBindWaitsForOtherParameters(t *testing.T) {
	for name, late := range map[string]bool{"known when the node is chosen": false, "granted since": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, all(disk("data", ledger.AccessNode), one(ledger.HoldSeen{Volume: volume("data"), Hold: ledger.Hold{Version: "1", Node: "n1"}}))...)
			pod := podWith("p", "data")
			backup := ledger.Ticket{ID: ledger.TicketID{Namespace: pod.Namespace, Name: "nightly"}, UID: "nightly", Version: "1", Type: ledger.TypeBackup, Node: "n1",
				Phase: ledger.TicketGranted, SatisfiedSince: 1, Parameters: "x", Volumes: []ledger.TicketVolume{{Claim: "data"}}}
			if !late {
				r.apply(backup)
			}
			r.known(pod)
			c := r.granted(pod, "n1")
			r.apply(backup)
			r.RunPreBindPreFlights(t.Context(), c.state, pod, "n1")
			book := r.plugin.core.book
			if waitsFor, err := book.PendingBeforeBind(r.plugin.core.arbiter, book.Of(string(pod.UID))); err != nil || !strings.Contains(waitsFor, "for ticket "+pod.Namespace+"/nightly") {
				t.Errorf("the pod waits for %q (%v)", waitsFor, err)
			}
			if !book.Of(string(pod.UID)).Follow {
				t.Error("PreBind is skipped")
			}
			done := make(chan *fwk.Status, 1)
			go func() { done <- r.RunPreBindPlugins(t.Context(), c.state, pod, "n1") }()
			backup.Version, backup.Phase, backup.Reason = "2", ledger.TicketPending, string(arbiter.Outranked)
			r.apply(backup)
			if status := <-done; !status.IsSuccess() {
				t.Errorf("the ticket has let go, and PreBind says %v", status)
			}
		})
	}
}

// A policy that comes while a pod waits for its grant counts: the pod is bound once its volumes are attached.
// kube-scheduler asks PreBindPreFlight before that wait, or, as moorage-scheduler has it, not at all.
func TestPreBindHeedsAPolicyThatHasComeSince(t *testing.T) {
	for name, asked := range map[string]bool{"asked before the wait": true, "not asked": false} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, all(disk("data", ledger.AccessNode), one(ledger.HoldSeen{Volume: volume("data"), Hold: ledger.Hold{Version: "1", Node: "n1"}}))...)
			pod := podWith("p", "data")
			r.known(pod)
			c := r.reserve(pod, "n1").permit()
			if asked {
				r.RunPreBindPreFlights(t.Context(), c.state, pod, "n1")
			}
			r.apply(ledger.Policy{Name: "p", Version: "1", Driver: driver, BindAfterAttached: true})
			r.written(pod, "n1")
			r.decide(pod, metav1.ConditionTrue, "")
			if status := c.verdict(); !status.IsSuccess() {
				t.Fatal(status)
			}
			done := make(chan *fwk.Status, 1)
			go func() { done <- r.RunPreBindPlugins(t.Context(), c.state, pod, "n1") }()
			of := r.plugin.core.book.Of(string(pod.UID))
			eventually(t, "PreBind to be over, or to wait", func() bool {
				waits := false
				r.plugin.core.book.While(of, func() { waits = of.Follow })
				return waits || len(done) > 0
			})
			if len(done) > 0 {
				t.Fatalf("it is bound before its volumes are attached: %v", <-done)
			}
			r.apply(attached("data", "n1"))
			if status := <-done; !status.IsSuccess() {
				t.Errorf("PreBind says %v", status)
			}
		})
	}
}

// bindAfter: Attached.
func TestPolicyMayBindOnlyOnceAttached(t *testing.T) {
	attachment := ledger.Attachment{
		Name: ledger.AttachmentName(volume("data"), "n1"), UID: "va", Version: "1", Driver: driver, Node: "n1", PersistentVolume: "pv-data", Ours: true,
	}
	good, bad := attachment, attachment
	good.Version, bad.Version = "2", "2"
	good.Attached, bad.AttachError = true, ledger.CallError{Message: "disk is broken"}
	tests := map[string]struct {
		events []ledger.Event
		want   string
	}{
		"attached": {one(good, ledger.NodeState{Name: "n1", UID: "n1", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true,
			Reported: []ledger.VolumeID{volume("data")}}), ""},
		"failed": {one(bad), "attaching volume data to n1 failed and will be tried again: disk is broken"},
		"refused": {one(ledger.Policy{Name: "p", Version: "2", Driver: driver, BindAfterAttached: true, Refused: true}),
			arbiter.Reason{Code: arbiter.NotBeforeBind, Driver: driver, Policy: "p"}.Message()},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, all(disk("data", ledger.AccessNode), one(ledger.Policy{Name: "p", Driver: driver, BindAfterAttached: true},
				ledger.HoldSeen{Volume: volume("data"), Hold: ledger.Hold{Version: "1", Node: "n1"}}))...)
			pod := podWith("p", "data")
			r.known(pod)
			c := r.granted(pod, "n1")
			r.RunPreBindPreFlights(t.Context(), c.state, pod, "n1")
			done := make(chan *fwk.Status, 1)
			go func() { done <- r.RunPreBindPlugins(t.Context(), c.state, pod, "n1") }()
			r.apply(attachment)
			r.apply(test.events...)
			if status := <-done; !strings.HasSuffix(status.Message(), test.want) || status.IsSuccess() != (test.want == "") {
				t.Errorf("PreBind says %v, want %q", status, test.want)
			}
			c.unreserve()
			if status := r.filter(pod, "n1"); status.IsSuccess() != (test.want == "") {
				t.Errorf("at the same node again: %v", status)
			}
		})
	}
}

// The policy of a driver whose volumes need no attachment keeps no pod from its bind, refused or
// not: nobody attaches them, before the bind or after it.
func TestPolicyOfNoAttachmentKeepsNoBind(t *testing.T) {
	for name, refused := range map[string]bool{"refused": true, "not refused": false} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, all(disk("data", ledger.AccessNode), diskOf("files", "share", ledger.AccessMany), one(
				ledger.Driver{Name: "files", Version: "1"}, ledger.Policy{Name: "p", Version: "1", Driver: "files", BindAfterAttached: true, Workers: 1, Refused: refused},
				ledger.HoldSeen{Volume: volume("data"), Hold: ledger.Hold{Version: "1", Node: "n1"}}))...)
			pod := podWith("p", "data", "share")
			r.known(pod)
			c := r.granted(pod, "n1")
			if !r.plugin.core.book.Of(string(pod.UID)).Follow {
				t.Fatal("the grant is the last word before the bind")
			}
			if r.plugin.core.book.AwaitsWorker(r.plugin.core.arbiter, r.plugin.core.book.Of(string(pod.UID))) {
				t.Error("it waits for a worker of a driver that attaches nothing")
			}
			if status := r.RunPreBindPlugins(t.Context(), c.state, pod, "n1"); !status.IsSuccess() {
				t.Errorf("PreBind says %v", status)
			}
		})
	}
}

// What needs no VolumeAttachment waits for no worker, either: iSCSI and FC have none.
func TestNoWorkerWithoutAnAttachment(t *testing.T) {
	const plugin = "kubernetes.io/iscsi"
	lun := ledger.VolumeID{Driver: plugin, Handle: "lun"}
	r := newRig(t, all(diskOf(plugin, "lun", ledger.AccessNode), one(
		ledger.Policy{Name: "p", Version: "1", Driver: plugin, BindAfterAttached: true, Workers: 1},
		ledger.HoldSeen{Volume: lun, Hold: ledger.Hold{Version: "1", Node: "n1"}}))...)
	pod := podWith("p", "lun")
	r.known(pod)
	r.granted(pod, "n1")
	// It is still at another node.
	r.apply(ledger.NodeState{Name: "n2", UID: "n2", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true, Reported: []ledger.VolumeID{lun}})
	book := r.plugin.core.book
	if waitsFor, err := book.PendingBeforeBind(r.plugin.core.arbiter, book.Of(string(pod.UID))); err != nil || waitsFor == "" {
		t.Fatalf("the pod waits for %q: %v", waitsFor, err)
	}
	if book.AwaitsWorker(r.plugin.core.arbiter, book.Of(string(pod.UID))) {
		t.Error("it waits for a worker of a plugin that attaches nothing")
	}
}

// Where the driver has no room at the node, the pod waits for the controller to refuse its ticket, which tells
// the pod: a scheduler that heard of it first would withdraw the ticket without a word.
func TestNoRoomIsLeftToTheController(t *testing.T) {
	r := newRig(t, all(disk("data", ledger.AccessNode), one(ledger.Policy{Name: "p", Driver: driver, BindAfterAttached: true},
		ledger.HoldSeen{Volume: volume("data"), Hold: ledger.Hold{Version: "1", Node: "n1"}}))...)
	pod := podWith("p", "data")
	r.known(pod)
	r.granted(pod, "n1")
	r.apply(ledger.Attachment{
		Name: ledger.AttachmentName(volume("data"), "n1"), UID: "va", Version: "1", Driver: driver, Node: "n1", PersistentVolume: "pv-data", Ours: true,
		AttachError: ledger.CallError{Code: ledger.ResourceExhausted, Message: "no room"},
	})
	book := r.plugin.core.book
	if waitsFor, err := book.PendingBeforeBind(r.plugin.core.arbiter, book.Of(string(pod.UID))); err != nil || !strings.Contains(waitsFor, "no room") {
		t.Errorf("the pod waits for %q: %v", waitsFor, err)
	}
}

// A pod that was granted and then could not be bound gives its node up.
func TestGrantedButNotBound(t *testing.T) {
	r := newRig(t, disk("data", ledger.AccessNode)...)
	pod := podWith("p", "data")
	r.known(pod)
	c := r.granted(pod, "n1")
	c.unreserve()
	eventually(t, "the ticket to be withdrawn", func() bool { return slices.Equal(r.writes(), []string{"create n1", "delete n1"}) })
	if got := r.queue.names(); len(got) != 0 {
		t.Errorf("woken are %v: after a failed bind the framework itself tries again", got)
	}
}
