// SPDX-License-Identifier: Apache-2.0

package volumestatus

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

func (g *gate) refused(message string) {
	p := g.pod(ledger.PodLive, "8")
	p.Node = ""
	g.apply(p)
	g.object = g.object.DeepCopy()
	conditions := []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message}}
	for _, c := range g.object.Status.Conditions {
		if c.Type != corev1.PodScheduled {
			conditions = append(conditions, c)
		}
	}
	g.object.Status.Conditions = conditions
}

func (g *gate) says(code ledger.Code, message string) {
	g.t.Helper()
	status, err := v1alpha1.ParseVolumeStatus(g.last().Annotation)
	if err != nil || len(status.Volumes) != 1 {
		g.t.Fatalf("status %+v (%v)", status, err)
	}
	if v := status.Volumes[0]; v.Reason != string(code) || v.Message != message || v.SafeToMount || v.Node != "" {
		g.t.Errorf("volume status %+v, want %s: %s", v, code, message)
	}
	if c := g.last().Condition; c.Status != corev1.ConditionFalse || c.Reason != string(code) || c.Message != message {
		g.t.Errorf("condition %+v", c)
	}
}

func TestUnplaced(t *testing.T) {
	holder := ledger.Pod{UID: "holder", Version: "1", Namespace: "shop", Name: "db-0", Node: "worker-2", Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}}
	for name, test := range map[string]struct {
		message string
		event   ledger.Event
		code    ledger.Code // empty: it is not told
	}{
		"slots": {message: "0/3 nodes are available: 3 node(s) exceed max volume count: no free slot of driver d (4 of 4 used).", code: rules.NoFreeSlot},
		"slots, and held": {"0/4 nodes are available: 1 node(s) can't take volume data: worker-2 holds it for pod shop/db-0, 3 node(s) exceed max volume count: no free slot of driver d (4 of 4 used).",
			holder, rules.HeldElsewhere},
		"nodes that PreFilter left out": {"0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [VolumeHold]. 2 node(s) can't take volume data: worker-2 holds it for pod shop/db-0",
			holder, rules.HeldElsewhere},
		"no claim":                       {"0/3 nodes are available: persistentvolumeclaim \"data\" not found.", ledger.ClaimGone{Key: ledger.ClaimKey{Namespace: "shop", Name: "data"}}, rules.ClaimMissing},
		"driver":                         {message: "0/1 nodes are available: 1 d CSI driver is not installed on the node: driver d is not registered.", code: rules.DriverNotRegistered},
		"room":                           {message: "0/1 nodes are available: 1 node(s) where driver d has no room for another volume (it answered ResourceExhausted).", code: rules.NodeExhausted},
		"no room, in the driver's words": {message: "0/1 nodes are available: 1 node(s) where " + rules.Reason{Code: rules.NodeExhausted, Driver: "d", Detail: "quota"}.Message() + ".", code: rules.NodeExhausted},
		"no room, in the driver's words, and no slots": {message: "0/2 nodes are available: 1 node(s) exceed max volume count: no free slot of driver d (4 of 4 used), 1 node(s) where " + rules.Reason{Code: rules.NodeExhausted, Driver: "d", Detail: "quota", GRPC: ledger.ResourceExhausted}.Message() + ".", code: rules.NodeExhausted},
		"no room of another driver":                    {message: "0/2 nodes are available: 1 node(s) where " + rules.Reason{Code: rules.NodeExhausted, Driver: "d2", Detail: "quota"}.Message() + ", 1 node(s) exceed max volume count: no free slot of driver d (4 of 4 used).", code: rules.NoFreeSlot},
		"no matter of volumes":                         {message: "0/3 nodes are available: 3 Insufficient cpu."},
		"of another driver":                            {message: "0/3 nodes are available: 3 node(s) exceed max volume count: no free slot of driver d2 (4 of 4 used)."},
		"of another volume":                            {"0/3 nodes are available: 3 node(s) can't take volume data-2: worker-2 holds it for pod shop/db-0.", holder, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGate(t, true)
			g.apply(ledger.NodeState{Name: "worker-2", UID: "worker-2", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
			if test.event != nil {
				g.apply(test.event)
			}
			g.refused(test.message)
			if test.code == "" {
				g.look("nothing to tell", 0)
				g.now = g.now.Add(time.Hour)
				g.look("nothing to tell later", 0)
				return
			}
			if after := g.look("it may have a node soon", 0); after != settling {
				t.Errorf("looked at again after %s", after)
			}
			g.now = g.now.Add(settling)
			g.look("it has none", 1)
			g.says(test.code, test.message)
			g.look("nothing new", 1)
			if len(g.recorder.Events) > 0 {
				t.Errorf("event %s: the scheduler has told it", <-g.recorder.Events)
			}
		})
	}
}

// The scheduler's words change with each slot: a change is told at most once in Grace.
func TestUnplacedIsToldNowAndThen(t *testing.T) {
	g := newGate(t, true)
	words := func(used string) string {
		return "0/3 nodes are available: 3 node(s) exceed max volume count: no free slot of driver d (" + used + " of 4 used)."
	}
	g.refused(words("4"))
	g.look("it may have a node soon", 0)
	g.now = g.now.Add(settling)
	g.look("it has none", 1)
	g.refused(words("5"))
	if after := g.look("told just now", 1); after != 30*time.Second {
		t.Errorf("looked at again after %s", after)
	}
	g.now = g.now.Add(30 * time.Second)
	g.look("told a while ago", 2)
	g.says(rules.NoFreeSlot, words("5"))
	g.refused("0/3 nodes are available: 3 Insufficient cpu.")
	g.now = g.now.Add(30 * time.Second)
	g.look("volumes are no matter any more", 3)
	g.says(v1alpha1.ReasonPending, "")
	g.look("nothing new", 3)
	g.apply(g.pod(ledger.PodLive, "9"))
	g.apply(g.attachment("3", true))
	g.apply(g.node("4", nil, []ledger.VolumeID{data}))
	g.look("safe", 4)
	if len(g.next) != 0 {
		t.Errorf("remembered are %v", g.next)
	}
}

func TestUnplacedAndUnstamped(t *testing.T) {
	g := newGate(t, false)
	g.refused("0/3 nodes are available: 3 node(s) exceed max volume count: no free slot of driver d (4 of 4 used).")
	g.now = g.now.Add(time.Hour)
	g.look("not stamped", 0)
}

func TestMentions(t *testing.T) {
	for text, want := range map[string]bool{
		"1 node(s) can't take claim data":                true,
		"claim data, claim other":                        true,
		"0/1 nodes are available: 1 claim data.":         true,
		"claim data. Preemption is not helpful":          true,
		"claim data-2 is missing":                        false,
		"claim data.v2 is missing":                       false,
		"claim data.v2 is missing, and so is claim data": true,
		"claim dat": false,
		"claim databases are, claim data.backup and data more": false,
	} {
		if got := mentions(text, "claim data"); got != want {
			t.Errorf("%q mentions claim data: %t, want %t", text, got, want)
		}
	}
}
