// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes/fake"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	featuregatetesting "k8s.io/component-base/featuregate/testing"

	"github.com/moorage-dev/moorage/internal/served"
)

func reads(t *testing.T) []schema.GroupVersionResource {
	t.Helper()
	kube := fake.NewClientset()
	_, factory, err := newScheduler(t, kube, newMoorage(t), stockProfile(t), shippedProfile(t))
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	var all []schema.GroupVersionResource
	for _, action := range kube.Actions() {
		if action.Matches("list", action.GetResource().Resource) && !slices.Contains(all, action.GetResource()) {
			all = append(all, action.GetResource())
		}
	}
	return all
}

// 0: all releases serve it.
func introduced(t *testing.T, resource schema.GroupVersionResource) int {
	t.Helper()
	for kind := range clientscheme.Scheme.KnownTypes(resource.GroupVersion()) {
		if plural, _ := meta.UnsafeGuessKindToResource(resource.GroupVersion().WithKind(kind)); plural != resource {
			continue
		}
		object, err := clientscheme.Scheme.New(resource.GroupVersion().WithKind(kind))
		if err != nil {
			t.Fatal(err)
		}
		if told, ok := object.(interface{ APILifecycleIntroduced() (int, int) }); ok {
			_, minor := told.APILifecycleIntroduced()
			return minor
		}
		return 0
	}
	t.Fatalf("no kind is known for %s", resource)
	return 0
}

// It fails when a new Kubernetes scheduler reads more.
func TestSchedulerReadsWhatIsServedOrLeftOut(t *testing.T) {
	oldest := int(version.MustParse(served.OldestRelease).Minor())
	for name, gates := range map[string]featuregatetesting.FeatureOverrides{
		"by default":         {},
		"with every feature": {"AllAlpha": true, "AllBeta": true},
	} {
		t.Run(name, func(t *testing.T) {
			featuregatetesting.SetFeatureGatesDuringTest(t, feature.DefaultFeatureGate, gates)
			listed := reads(t)
			if len(listed) < 10 {
				t.Fatalf("the scheduler lists only %v", listed)
			}
			for _, resource := range listed {
				old := resource.Version == "v1" && introduced(t, resource) <= oldest
				if !old && !inTable(resource) {
					t.Errorf("the scheduler waits for %s (1.%d), which not every release serves by default, and internal/served does not name its feature", resource, introduced(t, resource))
				}
			}
		})
	}
}

func inTable(resource schema.GroupVersionResource) bool {
	return slices.ContainsFunc(served.SchedulerFeatures(), func(f served.Feature) bool {
		return f.GroupVersion == resource.GroupVersion().String() && slices.Contains(f.Resources, resource.Resource)
	})
}

func TestWhatIsLeftOutIsNotRead(t *testing.T) {
	rules := schema.GroupVersionResource{Group: "resource.k8s.io", Version: "v1", Resource: "devicetaintrules"}
	if !slices.Contains(reads(t), rules) {
		t.Fatal("the scheduler does not read device taint rules by default")
	}
	featuregatetesting.SetFeatureGateDuringTest(t, feature.DefaultFeatureGate, "DRADeviceTaintRules", false)
	if slices.Contains(reads(t), rules) {
		t.Error("the scheduler reads device taint rules without the feature")
	}
}
