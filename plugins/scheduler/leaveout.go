// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/component-base/featuregate"

	"github.com/moorage-dev/moorage/internal/served"
)

// omission is a feature that reads a resource which the API server does not serve.
type omission struct {
	feature featuregate.Feature
	// missing are the resources that are not served.
	missing string
	// off are the gates to switch off: the feature's own, and active gates that need it. Empty if
	// it has to stay on.
	off []featuregate.Feature
	// kept says why it stays on all the same; the scheduler will wait for the missing resource.
	kept string
}

// omissions returns the features to leave out for an API server with these resources. It reads
// gates after flags have been applied, and changes nothing: a gate that --feature-gates names, or
// that Kubernetes has locked, stays as it is.
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

// withDependents returns a gate and all active gates that depend on it, directly or not.
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
