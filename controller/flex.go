// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"fmt"
)

// errFlex says why the controller refuses to do the whole job.
var errFlex = errors.New("only kube-controller-manager, which has its driver, can attach a FlexVolume: " +
	"stay with its attach/detach controller (--mode=cooperative), or pass --allow-flex-volumes if its driver does not attach")

// refuseFlexVolumes returns an error where somebody has a FlexVolume that nobody
// would attach. Whether a driver of that kind attaches at all only the driver
// could say.
func (c termConfig) refuseFlexVolumes() error {
	if c.AllowFlexVolumes || c.cooperative() {
		return nil
	}
	if name := c.observer.FlexVolume(); name != "" {
		return fmt.Errorf("%s: %w", name, errFlex)
	}
	return nil
}
