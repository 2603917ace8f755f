// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"sync"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestTakeHasWhatDiffers(t *testing.T) {
	const nodes, rounds = 4, 2000
	l := ledger.New()
	changes := l.Gather()
	names := []ledger.NodeName{"a", "b", "c", "d"}
	var writing sync.WaitGroup
	for _, name := range names[:nodes] {
		writing.Go(func() {
			for limit := range int32(rounds) {
				l.Apply(time.Time{}, ledger.NodeDrivers{Node: name, Drivers: []ledger.DriverOnNode{{Name: "d", NodeID: string(name), Limit: limit}}})
			}
		})
	}
	over := make(chan struct{})
	go func() { writing.Wait(); close(over) }()
	before, _, _ := changes.Take()
	for last := false; !last; {
		select {
		case <-over:
			last = true
		default:
		}
		after, _, touched := changes.Take()
		for _, name := range names[:nodes] {
			if differs := before.Node(name) != after.Node(name); differs && !touched[name] {
				t.Fatalf("node %s differs, and only %v were touched", name, touched)
			}
		}
		before = after
	}
	if _, volumes, touched := changes.Take(); len(volumes)+len(touched) > 0 {
		t.Errorf("nothing has changed, and touched were %v and %v", volumes, touched)
	}
}
