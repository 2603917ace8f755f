// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"fmt"
	"slices"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/moorage-dev/moorage/plugins/volumehold"
)

// checked is the plugin with a check of its profile, which a plugin can't see
// while it is made: the profile is complete when events are registered, and an
// error then keeps the scheduler from starting.
type checked struct {
	*volumehold.VolumeHold
	handle fwk.Handle
}

// EventsToRegister refuses a profile that also has NodeVolumeLimits. That one
// counts a pod's own attachment twice, so that a pod could not come back to a
// node that is full with its volumes.
func (c *checked) EventsToRegister(ctx context.Context) ([]fwk.ClusterEventWithHint, error) {
	if profile, ok := c.handle.(interface{ ListPlugins() *config.Plugins }); ok {
		plugins := profile.ListPlugins()
		for _, point := range []config.PluginSet{plugins.PreFilter, plugins.Filter} {
			if slices.ContainsFunc(point.Enabled, func(p config.Plugin) bool { return p.Name == names.NodeVolumeLimits }) {
				return nil, fmt.Errorf("profile %s has both %s and %s, which would count the same slots twice: add %q to plugins.multiPoint.disabled of the profile",
					c.handle.ProfileName(), volumehold.Name, names.NodeVolumeLimits, "name: "+names.NodeVolumeLimits)
			}
		}
	}
	return c.VolumeHold.EventsToRegister(ctx)
}
