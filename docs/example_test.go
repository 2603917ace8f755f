// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

var applied = regexp.MustCompile(`kubectl apply -f (\S+)`)

func TestTheExampleIsOne(t *testing.T) {
	m := applied.FindStringSubmatch(text(t, filepath.Join(root, "test/sandbox/cli/up.go")))
	if m == nil {
		t.Fatal("the sandbox names nothing to apply")
	}
	var namespace corev1.Namespace
	var claim corev1.PersistentVolumeClaim
	var deployment appsv1.Deployment
	parts := strings.Split(text(t, filepath.Join(root, m[1])), "\n---\n")
	for i, into := range []any{&namespace, &claim, &deployment} {
		if err := yaml.UnmarshalStrict([]byte(parts[i]), into); err != nil {
			t.Fatal(err)
		}
	}
	if namespace.Labels[v1alpha1.LabelEnforce] != "true" || claim.Namespace != namespace.Name || deployment.Namespace != namespace.Name {
		t.Errorf("%+v, %+v", namespace.ObjectMeta, claim.ObjectMeta)
	}
	pod := deployment.Spec.Template
	if v := pod.Spec.Volumes[0].PersistentVolumeClaim; v == nil || v.ClaimName != claim.Name || deployment.Spec.Selector.MatchLabels["app"] != pod.Labels["app"] {
		t.Errorf("the Deployment does not use the claim: %+v", pod)
	}
}
