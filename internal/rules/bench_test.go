// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

func benchLedger(pods int) (*ledger.Ledger, *ledger.Pod) {
	l, now := ledger.New(), time.Unix(0, 0)
	version := 0
	next := func() string {
		version++
		return fmt.Sprint(version)
	}
	volume := func(name string) ledger.VolumeID {
		v := ledger.VolumeID{Driver: "disk", Handle: "vol-" + name}
		key := ledger.ClaimKey{Namespace: namespace, Name: name}
		l.Apply(now, ledger.PersistentVolume{Name: name, Version: next(), Volume: v, Access: ledger.AccessNode, Claim: key})
		l.Apply(now, ledger.Claim{Key: key, UID: name, Version: next(), Bound: true, PersistentVolume: name, Access: ledger.AccessNode})
		return v
	}
	l.Apply(now, ledger.NodeState{Name: "n", UID: "n", Version: next(), Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
	l.Apply(now, ledger.NodeDrivers{Node: "n", Version: next(), Drivers: []ledger.DriverOnNode{{Name: "disk", NodeID: "n", Limit: 2000}}})
	for i := range pods {
		name := fmt.Sprintf("p%d", i)
		v := volume(name)
		l.Apply(now, ledger.Pod{
			UID: name, Version: next(), Namespace: namespace, Name: name, Node: "n", Volumes: []ledger.PodVolume{{Name: "v", Claim: name}},
		})
		l.Apply(now, ledger.Attachment{
			Name: ledger.AttachmentName(v, "n"), UID: name, Version: next(), Driver: "disk", Node: "n", PersistentVolume: name, Attached: true,
		})
	}
	pod := &ledger.Pod{UID: "new", Version: next(), Namespace: namespace, Name: "new"}
	for _, name := range []string{"a", "b", "c"} {
		volume(name)
		pod.Volumes = append(pod.Volumes, ledger.PodVolume{Name: name, Claim: name})
	}
	l.Apply(now, *pod)
	return l, pod
}

func BenchmarkFit(b *testing.B) {
	for _, pods := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("pods=%d", pods), func(b *testing.B) {
			l, pod := benchLedger(pods)
			s := l.Snapshot()
			r := rules.PodRequest(s, pod)
			b.ReportAllocs()
			for b.Loop() {
				if v := (rules.Arbiter{}).Fit(s, r, "n", time.Unix(1, 0)); !v.Allowed() {
					b.Fatal(v)
				}
			}
		})
	}
}

func BenchmarkPlan(b *testing.B) {
	l, _ := benchLedger(100)
	s, v := l.Snapshot(), ledger.VolumeID{Driver: "disk", Handle: "vol-p7"}
	b.ReportAllocs()
	for b.Loop() {
		(rules.Arbiter{}).Plan(s, v, time.Unix(1, 0))
	}
}

// Fit walks neither pods nor attachments of the node.
func TestFitLooksAtNothingElse(t *testing.T) {
	cost := func(pods int) float64 {
		l, pod := benchLedger(pods)
		s := l.Snapshot()
		r := rules.PodRequest(s, pod)
		return testing.AllocsPerRun(100, func() { (rules.Arbiter{}).Fit(s, r, "n", time.Unix(1, 0)) })
	}
	if small, large := cost(10), cost(1000); small != large {
		t.Errorf("Fit allocates %v times at a node of 10 pods, %v at one of 1,000", small, large)
	}
}
