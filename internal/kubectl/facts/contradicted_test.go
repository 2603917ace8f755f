// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A container that could not be made for want of an object waits for the kubelet only, once that exists.
func TestMissingObjectExistsByNow(t *testing.T) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
		{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: configError, Message: `secret "key" not found`}}},
	}}}
	w := NewWorld(Objects{}, noon())
	if c := w.containerCause(p); c == nil || !strings.HasPrefix(c.Do, "Create it") {
		t.Errorf("the Secret is not known to exist: %+v", c)
	}
	w.Evidence.Named = map[NamedObject]Presence{{"secret", "shop", "key"}: {Exists: true}}
	if c := w.containerCause(p); !w.StartsSoon(p) || c == nil || !strings.HasPrefix(c.Do, "Wait") {
		t.Errorf("the Secret exists: %+v", c)
	}
}
