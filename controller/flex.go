// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/watch"
)

// flexVolumes reports each FlexVolume that no controller attaches, once in a term.
type flexVolumes struct{ told map[types.UID]bool }

func (f *flexVolumes) tell(c termConfig) {
	if c.cooperative() {
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
