// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/watch"
)

// errFlex says why the controller refuses to begin to do the whole job.
var errFlex = errors.New("only kube-controller-manager, which has its driver, can attach a FlexVolume: " +
	"stay with its attach/detach controller (--mode=cooperative), or pass --allow-flex-volumes if its driver does not attach")

// refuseFlexVolumes returns an error at a first installation if a PersistentVolume is a FlexVolume that
// no controller would attach: nothing depends on this controller yet, and kube-controller-manager's can
// stay. A first installation is a cluster without a VolumeHold and a VolumeTicket. Later such a volume
// is reported, and pods with one never keep a controller from leading: any user may create them.
func (c termConfig) refuseFlexVolumes(ctx context.Context) error {
	if c.AllowFlexVolumes || c.cooperative() {
		return nil
	}
	for _, flex := range c.observer.FlexVolumes() {
		if flex.Pod != nil {
			continue
		}
		if first, err := c.observer.Untouched(ctx); err != nil || !first {
			return err
		}
		return fmt.Errorf("PersistentVolume %s: %w", flex.Name, errFlex)
	}
	return nil
}

// flexVolumes reports, once in a term, each FlexVolume that no controller attaches.
type flexVolumes struct{ told map[types.UID]bool }

func (f *flexVolumes) tell(c termConfig) {
	if c.AllowFlexVolumes || c.cooperative() {
		return
	}
	known := map[types.UID]bool{}
	for _, flex := range c.observer.FlexVolumes() {
		known[flex.UID] = true
		if !f.told[flex.UID] {
			c.tellFlex(flex)
		}
	}
	f.told = known
}

func (c termConfig) tellFlex(flex watch.FlexVolume) {
	if flex.Pod != nil {
		c.events.FlexVolumeOfPod(flex.Pod)
		return
	}
	c.events.FlexVolume(flex.Name, flex.UID)
}
