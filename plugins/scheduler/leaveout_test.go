// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"

	"github.com/moorage-dev/moorage/internal/served"
)

func ownGates() featuregate.MutableVersionedFeatureGate {
	return feature.DefaultMutableFeatureGate.DeepCopy()
}

func everything(except ...string) served.Resources {
	all := served.Resources{}
	for _, f := range served.SchedulerFeatures() {
		all[f.GroupVersion] = append(all[f.GroupVersion], served.Without(f.Resources, except)...)
	}
	return all
}

// The table says whether a gate is on by default or locked.
func TestFeaturesAreGates(t *testing.T) {
	gates := ownGates()
	for _, f := range served.SchedulerFeatures() {
		spec, ok := gates.GetAll()[featuregate.Feature(f.Gate)]
		if !ok {
			t.Errorf("kube-scheduler has no feature gate %s", f.Gate)
		} else if spec.Default != f.ByDefault || spec.LockToDefault != f.Locked {
			t.Errorf("feature gate %s is on by default: %t, and locked: %t; the table says %t, %t", f.Gate, spec.Default, spec.LockToDefault, f.ByDefault, f.Locked)
		}
	}
}

func TestOmissions(t *testing.T) {
	without := everything("devicetaintrules", "podgroups", "compositepodgroups", "leasecandidates")
	for name, test := range map[string]struct {
		flags     string
		emulated  string
		resources served.Resources
		off       string // gates, in their order
		kept      string // in the reason of each gate that stays
	}{
		"all is served":                           {resources: everything()},
		"1.34 to 1.36":                            {resources: without, off: "DRADeviceTaintRules"},
		"switched off by hand":                    {flags: "DRADeviceTaintRules=false", resources: without},
		"asked for by name":                       {flags: "DRADeviceTaintRules=true", resources: without, kept: "--feature-gates asks for DRADeviceTaintRules"},
		"an emulated version without the feature": {emulated: "1.36", resources: without},
		"asked for, not by name":                  {flags: "AllBeta=true", resources: without, off: "CoordinatedLeaderElection DRADeviceTaintRules DRAWorkloadResourceClaims GenericWorkload"},
		"another needs it, by name":               {flags: "GenericWorkload=true,WorkloadWithJob=true", resources: everything("podgroups"), kept: "--feature-gates asks for"},
		"locked":                                  {resources: everything("resourceclaims"), kept: "DynamicResourceAllocation can't be switched off"},
	} {
		gates := ownGates()
		if test.emulated != "" {
			if err := gates.SetEmulationVersion(version.MustParse(test.emulated)); err != nil {
				t.Fatal(err)
			}
		}
		if err := gates.Set(test.flags); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		list := omissions(gates, test.resources)
		off := switchedOff(list)
		slices.Sort(off)
		if got := strings.Join(slices.Compact(off), " "); got != test.off {
			t.Errorf("%s: %q are left out, want %q", name, got, test.off)
		}
		kept := slices.IndexFunc(list, func(o omission) bool { return o.kept != "" })
		if (kept >= 0) != (test.kept != "") || kept >= 0 && !strings.HasPrefix(list[kept].kept, test.kept) {
			t.Errorf("%s: it is said %v, want %q", name, list, test.kept)
		}
		if err := leaveOut(gates, list); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, gate := range off {
			if gates.Enabled(featuregate.Feature(gate)) {
				t.Errorf("%s: %s is still on", name, gate)
			}
		}
		if errs := gates.Validate(); len(errs) > 0 {
			t.Errorf("%s: the gates are not valid any more: %v", name, errs)
		}
	}
}

func TestOmissionNamesWhatIsMissing(t *testing.T) {
	list := omissions(ownGates(), everything("devicetaintrules"))
	if len(list) != 1 || fmt.Sprint(list[0].missing) != "devicetaintrules of resource.k8s.io/v1" {
		t.Errorf("the omissions are %+v", list)
	}
}
