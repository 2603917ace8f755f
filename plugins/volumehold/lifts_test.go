// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

type lift struct {
	code  ledger.Code
	world []ledger.Event
	event []ledger.Event
}

func lifts() []lift {
	rwo, key := ledger.AccessNode, ledger.ClaimKey{Namespace: "shop", Name: "data"}
	leaving := ledger.AttachmentName(ledger.VolumeID{Driver: driver, Handle: "data"}, "n9")
	full := all(disk("a", rwo), disk("b", rwo), disk("c", rwo), one(slotsAt("n1", 1), slotsAt("n2", 1), slotsAt("n3", 1),
		attached("a", "n1"), attached("b", "n2"), attached("c", "n3")))
	claim := func(change func(*ledger.Claim)) ledger.Event {
		c := ledger.Claim{Key: key, UID: "claim-data", PersistentVolume: "pv-data", Bound: true, Access: rwo}
		change(&c)
		return c
	}
	pv := func(change func(*ledger.PersistentVolume)) ledger.Event {
		v := ledger.PersistentVolume{Name: "pv-data", UID: "pv-data", Volume: volume("data"), Access: rwo, Claim: key}
		change(&v)
		return v
	}
	exhausted := func(node string) ledger.Event {
		return ledger.Attachment{Name: "x" + node, UID: "x" + node, Driver: driver, Node: ledger.NodeName(node), PersistentVolume: "pv-a",
			AttachError: ledger.CallError{Code: ledger.ResourceExhausted}}
	}
	only := one(ledger.NodeDriversGone{Node: "n2"}, ledger.NodeDriversGone{Node: "n3"}, ledger.Driver{Name: driver, Version: "1", AttachRequired: true, NeedsNode: true})
	holder := boundTo(podWith("holder", "data"), "n9")
	cut := func(node, version string, drivers ...string) ledger.Event {
		return ledger.NodeState{Name: ledger.NodeName(node), UID: node, Version: version, Ready: ledger.ReadyTrue, Managed: true, Reporting: true, CutOff: drivers}
	}
	managed := func(version string, is bool) ledger.Event {
		return ledger.NodeState{Name: "n1", UID: "n1", Version: version, Ready: ledger.ReadyTrue, Managed: is, Reporting: true}
	}
	return []lift{
		{rules.NoFreeSlot, all(disk("data", rwo), full), one(detached("b", "n2"))},
		{rules.NodeExhausted, all(disk("data", rwo), disk("a", ledger.AccessMany), only, one(exhausted("n1"))), one(slotsAt("n1", 3))},
		{rules.NodeExcluded, all(disk("data", rwo), one(pv(func(v *ledger.PersistentVolume) {
			v.Version, v.Affinity = "2", ledger.NewNodeAffinity(ledger.NodeTerm{Labels: []ledger.NodeRequirement{{Key: "zone", Operator: ledger.NodeExists}}})
		}))), one(ledger.NodeState{Name: "n2", UID: "n2", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true, Labels: map[string]string{"zone": "a"}})},
		{rules.NodeFenced, all(disk("data", rwo), one(cut("n1", "2", driver), cut("n2", "2", driver), cut("n3", "2", driver),
			ledger.Policy{Name: "p", Version: "1", Driver: driver, NetworkFence: ledger.NetworkFence{Class: "c"}})), one(cut("n2", "3"))},
		{rules.ClaimMissing, nil, disk("data", rwo)},
		{rules.ClaimLost, one(claim(func(c *ledger.Claim) { c.Bound, c.Lost = false, true })), disk("data", rwo)},
		{rules.ClaimDeleting, all(disk("data", rwo), one(claim(func(c *ledger.Claim) { c.Deleting = true }))), one(ledger.ClaimGone{Key: key}, claim(func(c *ledger.Claim) { c.UID = "new" }))},
		{rules.ClaimUnbound, one(ledger.StorageClass{Name: "now", Driver: driver}, claim(func(c *ledger.Claim) { c.Bound, c.PersistentVolume, c.Class = false, "", "now" })), disk("data", rwo)},
		{rules.HeldElsewhere, all(disk("data", rwo), one(factOf(holder))), one(ledger.PodGone{UID: string(holder.UID)})},
		{rules.StaysDetached, all(disk("data", rwo), one(asking(ledger.Detached, ""))), one(ledger.TicketGone{ID: ledger.TicketID{Namespace: "shop", Name: "asks"}})},
		{rules.IncompatibleParameters, all(disk("data", ledger.AccessMany), only, one(asking("n1", "other"))), one(ledger.TicketGone{ID: ledger.TicketID{Namespace: "shop", Name: "asks"}})},
		{rules.SELinuxConflict, all(disk("data", ledger.AccessMany), only, one(ledger.Driver{Name: driver, Version: "2", AttachRequired: true, NeedsNode: true, SELinuxMount: true},
			ledger.NodeState{Name: "n1", UID: "n1", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true, SELinuxMount: true}, labelledHolder("n1"))), one(ledger.PodGone{UID: "uid-labelled"})},
		{rules.UsedByOtherPod, all(disk("data", ledger.AccessPod), one(factOf(holder))), one(ledger.PodGone{UID: string(holder.UID)})},
		{rules.DriverNotRegistered, all(disk("data", rwo), only, one(ledger.NodeDriversGone{Node: "n1"})), one(slotsAt("n3", 1))},
		{rules.NodeUnmanaged, all(disk("data", rwo), only, one(managed("2", false))), one(managed("3", true))},
		{rules.ForeignAttachment, all(disk("data", rwo), one(ledger.Attachment{Name: "foreign", UID: "f", Driver: driver, Node: "n9", PersistentVolume: "pv-data", Attached: true})), one(ledger.AttachmentGone{Name: "foreign"})},
		{rules.Detaching, all(disk("data", rwo), one(ledger.Attachment{Name: leaving, UID: "l", Driver: driver, Node: "n9", PersistentVolume: "pv-data", Attached: true, Ours: true, Cooperative: true})), one(ledger.AttachmentGone{Name: leaving})},
		{rules.VolumeMissing, disk("data", rwo)[1:], disk("data", rwo)},
	}
}

func labelledHolder(node string) ledger.Event {
	fact := factOf(boundTo(podWith("labelled", "data"), node))
	fact.Volumes[0].SELinux = ledger.SELinuxLabel("", "s0:c1,c2")
	return fact
}

func asking(node ledger.NodeName, parameters string) ledger.Event {
	return ledger.Ticket{
		ID: ledger.TicketID{Namespace: "shop", Name: "asks"}, UID: "asks", Version: "1", Type: ledger.TypeManual, Node: node, Parameters: parameters,
		Phase: ledger.TicketGranted, Volumes: []ledger.TicketVolume{{Claim: "data"}},
	}
}

// Only the controller gives these reasons, on the ticket; the pod is retried when its ticket is withdrawn.
func answers() []ledger.Code {
	return []ledger.Code{rules.Outranked, rules.NodeMissing, rules.TooManyTickets, rules.SlotsNotKept, rules.NoNode, rules.LeavesNode, rules.NeverAttached, rules.VolumeDeleting}
}

// A pod's volumes don't change.
func lasting() []ledger.Code { return []ledger.Code{rules.TooManyVolumes} }

// These refuse no node: a pod waits for them in PreBind (TestPreBindWaitsForTheVolumeThatTheClaimBecame).
func progress() []ledger.Code {
	return []ledger.Code{
		rules.NotGranted, rules.NoFreeWorker, rules.Attaching, rules.AttachFailed, rules.NotReported, rules.DetachFailed, rules.DetachUnanswered, rules.KeptByFinalizer,
		rules.InUse, rules.InUseUnexplained, rules.StagedAtNode, rules.InUseUnknown, rules.NodeUnreachable, rules.DetachDelayed, rules.NodeReplaced, rules.VolumeReplaced,
	}
}

// A new reason needs the event that lifts it.
func TestEveryReasonHasALift(t *testing.T) {
	have := slices.Concat(answers(), lasting(), progress())
	for _, l := range lifts() {
		have = append(have, l.code)
	}
	for _, code := range rules.Codes() {
		switch n := len(slices.DeleteFunc(slices.Clone(have), func(c ledger.Code) bool { return c != code })); {
		case n == 0:
			t.Errorf("%s is in no list: in lifts if something lifts it, in lasting if nothing does, in progress if it keeps no pod from being placed, in answers if only the controller gives it, on a ticket", code)
		case n > 1:
			t.Errorf("%s is in %d lists", code, n)
		}
	}
	for _, code := range have {
		if !slices.Contains(rules.Codes(), code) {
			t.Errorf("%s is no reason of the arbiter's", code)
		}
	}
}

func TestLiftsWakeThePod(t *testing.T) {
	for _, l := range lifts() {
		for _, how := range []string{"tried", "queued"} {
			t.Run(string(l.code)+" "+how, func(t *testing.T) {
				r := newStillRig(t, l.world...)
				close(r.synced)
				pod, stranger := podWith("p", "data"), podWith("stranger", "other")
				r.known(pod, stranger)
				if how == "queued" && r.plugin.PreEnqueue(t.Context(), pod).IsSuccess() {
					how = "tried" // only an attempt can refuse it
				}
				if how == "tried" {
					r.refused(pod, l.code)
				}
				r.prefilter(stranger)
				r.plugin.core.requeuer.Look(t.Context())
				if got := r.queue.names(); len(got) != 0 {
					t.Fatalf("woken before anything happened: %v", got)
				}
				r.apply(l.event...)
				r.plugin.core.requeuer.Look(t.Context())
				if got := r.queue.names(); !slices.Equal(got, []string{"p"}) {
					t.Errorf("woken are %v, want just the pod", got)
				}
			})
		}
	}
}

// Time alone ends a driver's refusal: no object changes.
func TestTimeWakesThePod(t *testing.T) {
	i := slices.IndexFunc(lifts(), func(l lift) bool { return l.code == rules.NodeExhausted })
	r := newStillRig(t, lifts()[i].world...)
	close(r.synced)
	pod := podWith("p", "data")
	r.known(pod)
	r.refused(pod, rules.NodeExhausted)
	now := time.Now()
	for _, test := range []struct {
		at   time.Time
		want []string
	}{{now.Add(-time.Hour), nil}, {now.Add(time.Hour), []string{"p"}}} {
		r.apply(rules.Lapse(test.at))
		r.plugin.core.requeuer.Look(t.Context())
		if got := r.queue.names(); !slices.Equal(got, test.want) {
			t.Errorf("woken are %v, want %v", got, test.want)
		}
	}
}

func (r *rig) refused(pod *corev1.Pod, code ledger.Code) {
	r.t.Helper()
	for _, node := range []string{"n1", "n2", "n3"} {
		if status := r.filter(pod, node); status.IsSuccess() {
			r.t.Fatalf("the pod fits %s", node)
		}
	}
	s, fact := r.Snapshot(), factOf(pod)
	verdict := r.plugin.core.arbiter.Fit(s, rules.PodRequest(s, &fact), "n1", r.plugin.core.now())
	if !slices.ContainsFunc(verdict.Reasons, func(reason rules.Reason) bool { return reason.Code == code }) {
		r.t.Fatalf("refused for %v, not %s", verdict.Reasons, code)
	}
}

// Only the ticket's answer tells that the pod's volume is free.
func TestPodIsWokenWhenATicketIsToldToWait(t *testing.T) {
	first := ledger.Ticket{ID: ledger.TicketID{Namespace: "shop", Name: "a"}, UID: "a", Version: "1", Type: ledger.TypeManual, Node: "n3",
		Volumes: []ledger.TicketVolume{{Claim: "w"}}}
	asks := ledger.Ticket{ID: ledger.TicketID{Namespace: "shop", Name: "t"}, UID: "t", Version: "1", Type: ledger.TypeManual, Node: "n2",
		Volumes: []ledger.TicketVolume{{Claim: "v"}, {Claim: "w"}}}
	r := newStillRig(t, all(disk("v", ledger.AccessNode), disk("w", ledger.AccessNode), one(first, asks))...)
	close(r.synced)
	pod := podWith("p", "v")
	pod.CreationTimestamp = metav1.NewTime(time.Unix(1000, 0)) // after the tickets
	r.known(pod)
	if status := r.filter(pod, "n1"); status.IsSuccess() {
		t.Fatal("the pod is not kept from n1")
	}
	r.plugin.core.requeuer.Look(t.Context())
	if woken := r.queue.names(); len(woken) != 0 {
		t.Fatalf("woken before anything happened: %v", woken)
	}
	asks.Version, asks.Reason = "2", string(rules.HeldElsewhere)
	r.apply(asks)
	r.plugin.core.requeuer.Look(t.Context())
	if woken := r.queue.names(); !slices.Contains(woken, "p") {
		t.Errorf("woken are %v", woken)
	}
	if status := r.filter(podWith("q", "v"), "n1"); !status.IsSuccess() {
		t.Errorf("n1 does not take the volume: %v", status)
	}
}

// Only an attempt, or the gate, gives a pod its new reason.
func TestPodIsToldItsNewReason(t *testing.T) {
	claim := ledger.Claim{Key: ledger.ClaimKey{Namespace: "shop", Name: "data"}, UID: "claim-data", Class: "now", Access: ledger.AccessNode}
	holder := boundTo(podWith("holder", "data"), "n9")
	for _, test := range []struct {
		name          string
		before, after []ledger.Event
		gated         bool
	}{
		{"the claim is made, and has no volume yet", nil, one(ledger.StorageClass{Name: "now", Driver: driver}, claim), false},
		{"the claim is made, and a ticket keeps its volume detached", nil, append(disk("data", ledger.AccessNode), asking(ledger.Detached, "")), true},
		{"a ticket keeps the volume detached that a pod used", all(disk("data", ledger.AccessPod), one(factOf(holder))),
			one(ledger.PodGone{UID: string(holder.UID)}, asking(ledger.Detached, "")), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newStillRig(t, test.before...)
			close(r.synced)
			pod := podWith("p", "data")
			r.known(pod)
			if !r.plugin.PreEnqueue(t.Context(), pod).IsSuccess() {
				t.Fatal("gated before the change")
			}
			if r.filter(pod, "n1").IsSuccess() {
				t.Fatal("the pod fits n1")
			}
			r.plugin.core.requeuer.Look(t.Context())
			r.apply(test.after...)
			r.plugin.core.requeuer.Look(t.Context())
			if woken := r.queue.names(); !slices.Equal(woken, []string{"p"}) {
				t.Errorf("woken are %v, want just the pod", woken)
			}
			if gated := !r.plugin.PreEnqueue(t.Context(), pod).IsSuccess(); gated != test.gated {
				t.Errorf("gated: %t", gated)
			}
		})
	}
}
