// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"slices"
	"strings"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/moorage-dev/moorage/plugins/promptbinding"
	"github.com/moorage-dev/moorage/plugins/volumehold"
)

// checked is the plugin with a check of its profile. The profile is complete only when events are
// registered: an error then keeps the scheduler from starting.
type checked struct {
	guarded
	handle fwk.Handle
}

// EventsToRegister refuses an unsuitable profile.
func (c *checked) EventsToRegister(ctx context.Context) ([]fwk.ClusterEventWithHint, error) {
	if profile, ok := c.handle.(interface{ ListPlugins() *config.Plugins }); ok {
		if err := check(profile.ListPlugins()); err != nil {
			return nil, fmt.Errorf("profile %s: %w", c.handle.ProfileName(), err)
		}
	}
	return c.guarded.EventsToRegister(ctx)
}

// check returns a profile's fault, with the remedy.
func check(plugins *config.Plugins) error {
	// NodeVolumeLimits counts a pod's own attachment twice: a pod could not come back to a full node.
	if at(plugins.PreFilter, names.NodeVolumeLimits) >= 0 || at(plugins.Filter, names.NodeVolumeLimits) >= 0 {
		return fmt.Errorf("it has both %s and %s, which would count the same slots twice: add %q to plugins.multiPoint.disabled of the profile",
			volumehold.Name, names.NodeVolumeLimits, "name: "+names.NodeVolumeLimits)
	}
	if missing := missingPoints(plugins); len(missing) > 0 {
		return fmt.Errorf("%s is not enabled for %s, without which it can't reserve what a pod needs: enable it under plugins.multiPoint of the profile",
			volumehold.Name, strings.Join(missing, ", "))
	}
	if err := checkBinding(plugins); err != nil {
		return err
	}
	// Another plugin's running bind could not be made to fail when another scheduler takes over.
	if at(plugins.Bind, volumehold.Name) != 0 {
		return fmt.Errorf("it has another plugin than %s bind pods first: put %q first in plugins.bind.enabled of the profile",
			volumehold.Name, "name: "+volumehold.Name)
	}
	return nil
}

// checkBinding allows VolumeBinding or PromptVolumeBinding. Both would write for the same claims.
func checkBinding(plugins *config.Plugins) error {
	prompt := at(plugins.Filter, promptbinding.Name) >= 0 || at(plugins.PreBind, promptbinding.Name) >= 0
	stock := at(plugins.Filter, names.VolumeBinding) >= 0 || at(plugins.PreBind, names.VolumeBinding) >= 0
	if prompt && stock {
		return fmt.Errorf("it has both %s and %s, which would bind the same claims twice: add %q to plugins.multiPoint.disabled of the profile",
			promptbinding.Name, names.VolumeBinding, "name: "+names.VolumeBinding)
	}
	return nil
}

// Score is optional.
func missingPoints(plugins *config.Plugins) []string {
	var missing []string
	for _, point := range []struct {
		name string
		set  config.PluginSet
	}{
		{"preEnqueue", plugins.PreEnqueue}, {"preFilter", plugins.PreFilter}, {"filter", plugins.Filter}, {"postFilter", plugins.PostFilter},
		{"reserve", plugins.Reserve}, {"permit", plugins.Permit}, {"postBind", plugins.PostBind},
	} {
		if at(point.set, volumehold.Name) < 0 {
			missing = append(missing, point.name)
		}
	}
	return missing
}

// at is a plugin's index at an extension point; -1: absent.
func at(point config.PluginSet, name string) int {
	return slices.IndexFunc(point.Enabled, func(p config.Plugin) bool { return p.Name == name })
}
