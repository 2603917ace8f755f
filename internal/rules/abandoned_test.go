// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"slices"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Also pods without volumes; pods of a Ready node stay.
func TestAbandoned(t *testing.T) {
	now := time.Unix(1000, 0)
	gone := ledger.New()
	gone.Apply(now, ledger.NodeState{Name: "n1", UID: "n", Version: "1", OutOfService: true, Ready: ledger.ReadyUnknown, InUse: []ledger.VolumeID{{Driver: "d", Handle: "h"}}})
	gone.Apply(now, ledger.Attachment{Name: "csi", UID: "a", Version: "1", Driver: "d", Node: "n1", Inline: ledger.VolumeID{Driver: "d", Handle: "h"}})
	gone.Apply(now, ledger.Pod{UID: "p", Version: "1", Name: "p", Node: "n1", Phase: ledger.PodTerminating})
	gone.Apply(now, ledger.NodeGone{Name: "n1"})
	if steps := (rules.Arbiter{}).Abandoned(gone.Snapshot(), "n1"); steps != nil {
		t.Errorf("the Node is gone, and with it who vouched for it: %v", steps)
	}
	for name, test := range map[string]struct {
		node    ledger.NodeState
		arbiter rules.Arbiter
		want    []string
	}{
		"out of service, not ready":   {ledger.NodeState{OutOfService: true, Ready: ledger.ReadyUnknown}, rules.Arbiter{}, []string{"api", "cache", "db", "queue", "web"}},
		"out of service, and says no": {ledger.NodeState{OutOfService: true, Ready: ledger.ReadyFalse}, rules.Arbiter{}, []string{"api", "cache", "db", "queue", "web"}},
		"out of service, and ready":   {ledger.NodeState{OutOfService: true, Ready: ledger.ReadyTrue}, rules.Arbiter{}, nil},
		"not ready":                   {ledger.NodeState{Ready: ledger.ReadyUnknown}, rules.Arbiter{}, nil},
		"beside another controller":   {ledger.NodeState{OutOfService: true, Ready: ledger.ReadyUnknown}, rules.Arbiter{Cooperative: true}, nil},
	} {
		l := ledger.New()
		test.node.Name, test.node.UID, test.node.Version = "n1", "n", "1"
		l.Apply(now, test.node)
		for _, p := range []ledger.Pod{
			{Name: "web", Node: "n1", Phase: ledger.PodTerminating},
			{Name: "db", Node: "n1", Phase: ledger.PodTerminating, Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}},
			{Name: "cache", Node: "n1", Phase: ledger.PodTerminating},
			{Name: "api", Node: "n1", Phase: ledger.PodTerminating},
			{Name: "queue", Node: "n1", Phase: ledger.PodTerminating},
			{Name: "stays", Node: "n1"},
			{Name: "ended", Node: "n1", Phase: ledger.PodFinished},
			{Name: "elsewhere", Node: "n2", Phase: ledger.PodTerminating},
		} {
			p.UID, p.Namespace, p.Version = p.Name, "s", "1"
			l.Apply(now, p)
		}
		var got []string
		for _, step := range test.arbiter.Abandoned(l.Snapshot(), "n1") {
			if step.Kind != rules.RemovePod || step.Node != "n1" {
				t.Errorf("%s: step %+v", name, step)
			}
			got = append(got, step.UID)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: removes %v, want %v", name, got, test.want)
		}
	}
}
