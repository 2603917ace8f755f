// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// Of an attachment whose node is gone it is said when it ends by the policy that there is.
func TestOrphanOfGoneNodeEndsByItsPolicy(t *testing.T) {
	for only, want := range map[bool]string{true: "No time limit forces its detach", false: "It is detached by force in 6m0s at most"} {
		var o Objects
		one(&o, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "gone"}}, "v")
		o.Pods = nil
		o.Policies = []*v1alpha1.AttachPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "p"},
			Spec: v1alpha1.AttachPolicySpec{Driver: driver, ForceDetach: &v1alpha1.ForceDetachPolicy{OnlyOutOfService: only}}}}
		orphans := NewWorld(o, noon()).Orphans()
		if len(orphans) != 1 || !strings.Contains(orphans[0].Message, want) {
			t.Errorf("only the taint forces: %v; it says %+v, want %q", only, orphans, want)
		}
	}
}
