// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// A policy that can't be followed is named, whether a pod is known that waits or not: the one for the
// volume's class, or for all of the driver, or the only one that there is.
func TestNotBeforeBindNamesThePolicy(t *testing.T) {
	policy := func(name, class string, bind v1alpha1.BindAfter) *v1alpha1.AttachPolicy {
		return &v1alpha1.AttachPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.AttachPolicySpec{Driver: driver, StorageClassName: class, BindAfter: bind}}
	}
	const early, late = v1alpha1.BindAfterAttached, v1alpha1.BindAfterGranted
	for name, test := range map[string]struct {
		policies []*v1alpha1.AttachPolicy
		unbound  bool // the claim has no volume yet, so that its class is not known here
		want     string
	}{
		"of the class":                     {[]*v1alpha1.AttachPolicy{policy("all", "", early), policy("fast", "fast", early), policy("slow", "slow", early)}, false, "fast"},
		"of the driver":                    {[]*v1alpha1.AttachPolicy{policy("all", "", early), policy("slow", "slow", early)}, false, "all"},
		"of the driver, under the class's": {[]*v1alpha1.AttachPolicy{policy("all", "", early), policy("fast", "fast", "")}, false, "all"},
		"the only one":                     {[]*v1alpha1.AttachPolicy{policy("all", "", late), policy("fast", "fast", early)}, true, "fast"},
		"either":                           {[]*v1alpha1.AttachPolicy{policy("slow", "slow", early), policy("fast", "fast", early)}, true, ""},
		"none is seen":                     {nil, false, ""},
	} {
		o := left()
		o.Policies = test.policies
		o.PersistentVolumes[0].Spec.StorageClassName = "fast"
		r := arbiter.Reason{Code: arbiter.NotBeforeBind, Driver: driver, Volume: ledger.VolumeID{Driver: driver, Handle: "h"}, Claim: "h"}
		if test.unbound {
			r.Volume = ledger.VolumeID{Driver: driver, Handle: "of a claim"}
		}
		w, want := NewWorld(o, noon()), "the AttachPolicy of driver "+driver
		if test.want != "" {
			want = "AttachPolicy " + test.want + " of driver " + driver
		}
		for _, pod := range []*corev1.Pod{nil, podWith("h", "")} {
			if got := w.reason(r, pod); got.Policy != test.want || !strings.HasPrefix(got.Message, want+" has pods bound") {
				t.Errorf("%s: policy %q, %s", name, got.Policy, got.Message)
			}
		}
	}
}
