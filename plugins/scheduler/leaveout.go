// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/component-base/featuregate"

	"github.com/moorage-dev/moorage/internal/served"
)

type omission struct {
	feature featuregate.Feature
	missing string
	// off are the gates to switch off: the feature's own, and active gates that need it. Empty if
	// it has to stay on.
	off []featuregate.Feature
	// kept says why it stays on; the scheduler will wait for the resource.
	kept string
}

// omissions returns the features to leave out. It reads gates after the flags, and changes nothing: a gate
// in --feature-gates, or locked by Kubernetes, stays.
func omissions(gates featuregate.MutableVersionedFeatureGate, resources served.Resources) []omission {
	var list []omission
	for _, f := range served.SchedulerFeatures() {
		gate := featuregate.Feature(f.Gate)
		missing := resources.Missing(f)
		if len(missing) == 0 || !gates.Enabled(gate) {
			continue
		}
		left := omission{feature: gate, missing: fmt.Sprintf("%s of %s", strings.Join(missing, ", "), f.GroupVersion)}
		off := withDependents(gates, gate)
		if i := slices.IndexFunc(off, gates.ExplicitlySet); i >= 0 {
			left.kept = fmt.Sprintf("--feature-gates asks for %s", off[i])
		} else if i := slices.IndexFunc(off, func(g featuregate.Feature) bool { return gates.GetAll()[g].LockToDefault }); i >= 0 {
			left.kept = fmt.Sprintf("%s can't be switched off in this release of kube-scheduler", off[i])
		} else {
			left.off = off
		}
		list = append(list, left)
	}
	return list
}

func withDependents(gates featuregate.FeatureGate, gate featuregate.Feature) []featuregate.Feature {
	all := []featuregate.Feature{gate}
	for i := 0; i < len(all); i++ {
		for dependent, needed := range gates.Dependencies() {
			if slices.Contains(needed, all[i]) && !slices.Contains(all, dependent) && gates.Enabled(dependent) {
				all = append(all, dependent)
			}
		}
	}
	slices.Sort(all[1:])
	return all
}

func leaveOut(gates featuregate.MutableFeatureGate, list []omission) error {
	off := map[string]bool{}
	for _, o := range list {
		for _, gate := range o.off {
			off[string(gate)] = false
		}
	}
	if len(off) == 0 {
		return nil
	}
	if err := gates.SetFromMap(off); err != nil {
		return fmt.Errorf("switch off features whose resources are not served: %w", err)
	}
	return nil
}
