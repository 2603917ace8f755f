// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// A volume status counts on no copy of its pod.
func TestVolumeStatusOf(t *testing.T) {
	for name, test := range map[string]struct {
		annotation string
		uid        types.UID
		own        bool
	}{
		"its own":                 {`{"uid":"p","volumes":[{"name":"v","node":"n","safeToMount":true}]}`, "p", true},
		"of another pod":          {`{"uid":"before","volumes":[{"name":"v","node":"n","safeToMount":true}]}`, "p", false},
		"a placeholder":           {`{"volumes":[{"name":"v","safeToMount":false,"safeToDetach":false,"reason":"Pending"}]}`, "p", true},
		"of an earlier release":   {`{"volumes":[{"name":"v","node":"n","safeToMount":true}]}`, "p", false},
		"detached, of no pod":     {`{"volumes":[{"name":"v","safeToDetach":true}]}`, "p", false},
		"at a node, of no pod":    {`{"volumes":[{"name":"v","node":"n","reason":"Attaching"}]}`, "p", false},
		"no status":               {`x`, "p", false},
		"empty":                   {``, "p", false},
		"of a pod, and not known": {`{"uid":"before","volumes":[]}`, "", false},
	} {
		pod := &metav1.ObjectMeta{UID: test.uid, Annotations: map[string]string{v1alpha1.AnnotationVolumeStatus: test.annotation}}
		if _, own := v1alpha1.VolumeStatusOf(pod); own != test.own {
			t.Errorf("%s: own %t", name, own)
		}
	}
	if _, own := v1alpha1.VolumeStatusOf(&metav1.ObjectMeta{UID: "p"}); own {
		t.Error("a pod without the annotation has a status")
	}
}
