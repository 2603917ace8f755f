// SPDX-License-Identifier: Apache-2.0

package requeuer

import (
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/test/proptest"
)

func TestIdleIsWhatIsNotReserved(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		l := newList()
		uid := rapid.Map(rapid.IntRange(0, 3), func(n int) types.UID { return types.UID(strconv.Itoa(n)) })
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid.Draw(t, "uid")}}
				l.put(&waiting{pod: pod, reserved: rapid.Bool().Draw(t, "reserved")})
			},
			"drop":    func(t *rapid.T) { l.drop(uid.Draw(t, "uid")) },
			"reserve": func(t *rapid.T) { l.reserve(uid.Draw(t, "uid"), rapid.Bool().Draw(t, "has")) },
			"": func(t *rapid.T) {
				for uid, entry := range l.all {
					if idle := l.idle[uid]; (idle == entry) == entry.reserved {
						t.Fatalf("pod %s, reserved %t, is idle as %v", uid, entry.reserved, idle)
					}
				}
				for uid, entry := range l.idle {
					if l.all[uid] != entry {
						t.Fatalf("pod %s is idle, and not listed", uid)
					}
				}
			},
		})
	})
}
