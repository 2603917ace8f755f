// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/moorage-dev/moorage/internal/served"
)

func TestChartIsForTheOldestRelease(t *testing.T) {
	if got, want := loadChart(t).Metadata.KubeVersion, ">="+served.OldestRelease+".0-0"; got != want {
		t.Errorf("the chart's kubeVersion is %q, want %q", got, want)
	}
}

func TestKindsAreServedByTheOldestRelease(t *testing.T) {
	oldest := version.MustParse(served.OldestRelease)
	kinds := map[schema.GroupVersionKind]string{}
	for _, values := range []string{"", everything, attachers, "certManager: {enabled: false}"} {
		for name, object := range renderRelease(t, values) {
			kinds[object.GroupVersionKind()] = name
		}
	}
	ours := 0
	for _, kind := range slices.SortedFunc(maps.Keys(kinds), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) }) {
		if strings.Contains(kind.Group, ".") && !strings.HasSuffix(kind.Group, ".k8s.io") || kind.Group == "apiextensions.k8s.io" {
			continue // of a definition, which its user has installed, or of definitions, which is old
		}
		ours++
		object, err := clientgoscheme.Scheme.New(kind)
		if err != nil {
			t.Errorf("%s (%s): %v", kind, kinds[kind], err)
			continue
		}
		introduced, ok := object.(interface{ APILifecycleIntroduced() (int, int) })
		if !ok {
			continue // it was there before Kubernetes wrote such things down
		}
		major, minor := introduced.APILifecycleIntroduced()
		if kind.Version != "v1" || oldest.LessThan(version.MajorMinor(uint(major), uint(minor))) {
			t.Errorf("%s (%s) is of %d.%d, and the chart is for %s", kind, kinds[kind], major, minor, oldest)
		}
	}
	if ours < 12 {
		t.Errorf("only %d kinds of Kubernetes are found: %v", ours, kinds)
	}
}
