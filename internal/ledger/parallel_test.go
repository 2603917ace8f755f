// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

func TestSnapshotsInParallel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 6000)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	l, s := New(), newStream(&bytes{data})
	var readers sync.WaitGroup
	for i := 0; s.source.(*bytes).more(); i++ {
		l.Apply(start.Add(time.Duration(i)*time.Second), s.event())
		if i%20 != 0 {
			continue
		}
		snap, was := l.Snapshot(), make(chan string, 1)
		was <- describeSnapshot(snap)
		readers.Go(func() {
			want := <-was
			for range 3 {
				if got := describeSnapshot(snap); got != want {
					t.Errorf("a snapshot has changed:\n%s", lineDifference(want, got))
				}
			}
		})
	}
	readers.Wait()
}
