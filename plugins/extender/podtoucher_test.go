// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A pod waits for at most one pod of each other namespace.
func TestNamespacesTakeTurnsToBeNudged(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const others = 20
	var asked []types.UID
	now := time.Unix(100, 0)
	n := newPodToucher(nil, func() time.Time { return now }, func(uid types.UID) bool {
		if asked = append(asked, uid); len(asked) > others {
			cancel()
		}
		return false // it was tried by itself, and costs no write
	})
	pod := func(namespace, name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name)}}
	}
	for i := range others {
		n.enqueue(ctx, pod("shop", fmt.Sprint(i)))
	}
	n.enqueue(ctx, pod("bank", "db"))
	now = now.Add(nudgeGrace)
	n.queue.Run(ctx, 1)
	if at := slices.Index(asked, "bank/db"); at != 1 {
		t.Errorf("%d of another namespace come before it", at)
	}
}
