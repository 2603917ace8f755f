// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/proptest"
)

var name = rapid.StringMatching(`[a-z]{1,8}`)

func requesterGen() *rapid.Generator[ledger.Requester] {
	return rapid.Custom(func(t *rapid.T) ledger.Requester {
		return ledger.Requester{
			Ticket: rapid.Bool().Draw(t, "ticket"), Namespace: name.Draw(t, "namespace"),
			Name: name.Draw(t, "name"), UID: name.Draw(t, "uid"),
		}
	})
}

func fenceGen() *rapid.Generator[ledger.Fence] {
	return rapid.Custom(func(t *rapid.T) ledger.Fence {
		return ledger.Fence{
			Node: ledger.NodeName(name.Draw(t, "fenced")), NodeUID: name.Draw(t, "fenced UID"), BootID: name.Draw(t, "fenced boot"),
			Attachment: name.Draw(t, "attachment"), Rule: rapid.SampledFrom([]string{"", "OutOfService", "AfterUnreachable"}).Draw(t, "rule"),
			InUse: rapid.Bool().Draw(t, "in use"), Reported: rapid.Bool().Draw(t, "reported"), Since: int64(rapid.IntRange(0, 1<<31).Draw(t, "not ready")), Renewed: rapid.Int64Range(0, 1<<51).Draw(t, "lease"),
		}
	})
}

func holdGen() *rapid.Generator[ledger.Hold] {
	return rapid.Custom(func(t *rapid.T) ledger.Hold {
		some := func(label string) []ledger.Requester {
			list := rapid.SliceOfN(requesterGen(), 0, 3).Draw(t, label)
			if len(list) == 0 {
				return nil
			}
			return list
		}
		h := ledger.Hold{
			Version:     rapid.StringMatching(`[1-9][0-9]{0,5}`).Draw(t, "version"),
			Transitions: rapid.Int64Range(1, 99).Draw(t, "transitions"),
			Grants:      rapid.Int64Range(0, 99).Draw(t, "grants"),
			State:       ledger.HoldFree,
		}
		if pv := name.Draw(t, "pv"); rapid.Bool().Draw(t, "has a PersistentVolume") {
			h.PVs = []string{pv}
		}
		for range rapid.IntRange(0, 2).Draw(t, "fences") {
			h.Fences = append(h.Fences, fenceGen().Draw(t, "fence"))
		}
		if !rapid.Bool().Draw(t, "held") {
			return h
		}
		h.Node, h.NodeUID, h.State = ledger.NodeName(name.Draw(t, "node")), name.Draw(t, "node UID"), ledger.HoldHeld
		h.BootID = name.Draw(t, "boot")
		if rapid.IntRange(0, 3).Draw(t, "detached") == 0 {
			h.Node, h.NodeUID, h.BootID = ledger.Detached, "", ""
		}
		h.Requesters, h.Waiting = some("requesters"), some("waiting")
		if rapid.Bool().Draw(t, "promised") {
			h.Next = ledger.Promise{Node: ledger.NodeName(name.Draw(t, "next")), To: requesterGen().Draw(t, "to")}
			if h.Node != ledger.Detached && rapid.IntRange(0, 3).Draw(t, "promised to nowhere") == 0 {
				h.Next.Node = ledger.Detached
			}
		}
		switch rapid.IntRange(0, 5).Draw(t, "state") {
		case 0:
			h.State, h.Reason, h.Message = ledger.HoldDetachPending, "InUse", "still in use"
		case 1:
			h.State, h.Reason, h.Message = ledger.HoldDetachPending, "NodeUnreachable", "away"
			h.Force = &ledger.Force{Rule: "AfterPodGone", Node: "n1", NodeUID: name.Draw(t, "forced UID"), Since: int64(rapid.IntRange(0, 1<<31).Draw(t, "since")), Renewed: rapid.Int64Range(0, 1<<51).Draw(t, "renewed"), Elapsed: time.Duration(rapid.IntRange(0, 900).Draw(t, "elapsed")) * time.Second}
		case 2:
			h.State, h.Reason, h.Message = ledger.HoldUnknown, "ForeignAttachment", "two places"
		case 3:
			h.State, h.Reason, h.Message = ledger.HoldAttachFailed, "AttachFailed", "no such disk"
		case 4:
			h.Reason, h.Message = "DetachDelayed", "kept"
			return h
		}
		if h.Stays = h.State == ledger.HoldDetachPending && rapid.Bool().Draw(t, "stays"); h.State == ledger.HoldHeld && rapid.Bool().Draw(t, "left") {
			h.State, h.Message, h.Stays = ledger.HoldUnknown, "left", true
		}
		return h
	})
}

// Otherwise a hold would be written without end.
func TestHoldsSurviveTheAPI(t *testing.T) {
	volume := ledger.VolumeID{Driver: "d", Handle: "h"}
	proptest.Check(t, func(t *rapid.T) {
		var old *v1alpha1.VolumeHold
		for range 3 { // each written over its predecessor
			want := holdGen().Draw(t, "hold")
			object := HoldObject(HoldContext{Volume: volume, Old: old, Now: time.Unix(1, 0)}, want)
			raw, err := json.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			read := &v1alpha1.VolumeHold{}
			if err := json.Unmarshal(raw, read); err != nil {
				t.Fatal(err)
			}
			got := Hold(read)
			if got.Volume != volume || !reflect.DeepEqual(got.Hold, want) {
				t.Fatalf("written %+v\nread    %+v", want, got.Hold)
			}
			old = read
		}
	})
}

func TestHoldSummary(t *testing.T) {
	pod := func(n string) ledger.Requester { return ledger.Requester{Namespace: "shop", Name: n, UID: n} }
	object := HoldObject(HoldContext{Volume: ledger.VolumeID{Driver: "d", Handle: "h"}, Claim: ledger.ClaimKey{Namespace: "shop", Name: "data"}}, ledger.Hold{
		Node: "worker-1", Requesters: []ledger.Requester{pod("a"), pod("b")}, State: ledger.HoldHeld, PVs: []string{"pv-1"},
		Next: ledger.Promise{Node: "worker-2", To: pod("c")}, Waiting: []ledger.Requester{pod("d"), pod("e"), pod("f")},
	})
	want := v1alpha1.HoldSummary{
		Volume: "pv-1", Claim: "shop/data", Holder: "shop/a +1", State: v1alpha1.HoldStateHeld, Waiting: "shop/c at worker-2, shop/d +2",
	}
	if *object.Status.Summary != want {
		t.Errorf("summary %+v, want %+v", *object.Status.Summary, want)
	}
}

func TestHoldsAreBounded(t *testing.T) {
	var many []ledger.Requester
	for i := range 300 {
		many = append(many, ledger.Requester{Namespace: "n", Name: "p", UID: fmt.Sprint(i)})
	}
	many[0].Name = "" // the API would refuse it
	object := HoldObject(HoldContext{Volume: ledger.VolumeID{Driver: "d", Handle: "h"}}, ledger.Hold{Node: "n", Requesters: many})
	if n := len(object.Status.Holder.Requesters); n != listed-1 {
		t.Errorf("%d requesters are written, want %d", n, listed-1)
	}
}

func TestHoldConditions(t *testing.T) {
	volume := ledger.VolumeID{Driver: "d", Handle: "h"}
	old := &v1alpha1.VolumeHold{ObjectMeta: metav1.ObjectMeta{Generation: 7}}
	for name, test := range map[string]struct {
		hold ledger.Hold
		want string
	}{
		"held":          {ledger.Hold{Node: "n", State: ledger.HoldHeld}, ""},
		"kept":          {ledger.Hold{Node: "n", State: ledger.HoldHeld, Reason: "DetachDelayed"}, "DetachPending=False/DetachDelayed "},
		"free":          {ledger.Hold{Transitions: 1, State: ledger.HoldFree}, "Attached=False/Detached "},
		"two nodes":     {ledger.Hold{Node: "n", State: ledger.HoldUnknown, Reason: "ForeignAttachment"}, "Attached=Unknown/ForeignAttachment "},
		"dead node":     {ledger.Hold{Node: "n", State: ledger.HoldDetachPending, Reason: "NodeUnreachable"}, "DetachPending=True/NodeUnreachable SafeToDetach=False/NodeUnreachable "},
		"failed attach": {ledger.Hold{Node: "n", State: ledger.HoldAttachFailed, Reason: "AttachFailed"}, "Attached=False/AttachFailed "},
		"one of many":   {ledger.Hold{State: ledger.HoldAttachFailed, Reason: "AttachFailed"}, "Attached=False/AttachFailed "},
		"failed detach": {ledger.Hold{Node: "n", State: ledger.HoldDetachPending, Reason: "DetachFailed"}, "DetachPending=True/DetachFailed SafeToDetach=True/DetachFailed "},
	} {
		got := ""
		for _, c := range HoldObject(HoldContext{Volume: volume, Old: old, Now: time.Unix(1, 0)}, test.hold).Status.Conditions {
			got += fmt.Sprintf("%s=%s/%s ", c.Type, c.Status, c.Reason)
			if c.ObservedGeneration != 8 { // the write makes it
				t.Errorf("%s: generation %d", name, c.ObservedGeneration)
			}
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestHoldConditionTime(t *testing.T) {
	volume := ledger.VolumeID{Driver: "d", Handle: "h"}
	hold := ledger.Hold{Node: "n", State: ledger.HoldDetachPending, Reason: "InUse", Message: "in use"}
	first := HoldObject(HoldContext{Volume: volume, Now: time.Unix(100, 0)}, hold)
	hold.Message = "still in use"
	second := HoldObject(HoldContext{Volume: volume, Old: first, Now: time.Unix(200, 0)}, hold)
	c := second.Status.Conditions
	if len(c) != 2 || c[0].LastTransitionTime.Unix() != 100 || c[0].Message != "still in use" {
		t.Errorf("conditions %+v", c)
	}
	hold = ledger.Hold{Node: "n", State: ledger.HoldHeld}
	if third := HoldObject(HoldContext{Volume: volume, Old: second, Now: time.Unix(300, 0)}, hold); third.Status.Conditions != nil {
		t.Errorf("conditions %+v stay", third.Status.Conditions)
	}
}
