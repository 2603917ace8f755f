// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"fmt"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// There is no ticket: each group has a volume without a PersistentVolume.
func (s *scene) groups(namespace string, n int) {
	for i := range n {
		handles := make([]string, 0, maxMembers)
		for v := range maxMembers - 1 {
			handles = append(handles, fmt.Sprintf("v%03d", v))
		}
		w := snapshotOf(fmt.Sprintf("g%04d", i), append(handles, "zzz-none")...)
		w.Created, w.Told.Namespace = int64(i), namespace
		s.works = append(s.works, w)
	}
}

func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{20, 2000} {
		b.Run(fmt.Sprint(n, " groups"), func(b *testing.B) {
			s := newScene(b, ledger.Policy{AttachFor: only(ledger.OperationSnapshot)})
			for v := range maxMembers {
				s.volume(fmt.Sprintf("v%03d", v))
			}
			s.groups("shop", n)
			state := State{Snapshot: s.ledger.Snapshot(), Now: s.now, Namespace: "moorage-system", Works: s.works}
			for b.Loop() {
				state.Decide()
			}
		})
	}
}
