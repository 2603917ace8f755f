// SPDX-License-Identifier: Apache-2.0

package volumestatus

import (
	"maps"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// releases are ended pods by the volumes still at their kubelet: an ended pod is no user, and a volume's
// changes would not reach it.
type releases struct {
	volumes map[string][]ledger.VolumeID // by the pod's UID
	pods    map[ledger.VolumeID]map[string]bool
}

func newReleases() releases {
	return releases{volumes: map[string][]ledger.VolumeID{}, pods: map[ledger.VolumeID]map[string]bool{}}
}

func (r releases) set(uid string, volumes []ledger.VolumeID) {
	r.drop(uid)
	r.volumes[uid] = volumes
	for _, v := range volumes {
		if r.pods[v] == nil {
			r.pods[v] = map[string]bool{}
		}
		r.pods[v][uid] = true
	}
}

func (r releases) drop(uid string) {
	for _, v := range r.volumes[uid] {
		if delete(r.pods[v], uid); len(r.pods[v]) == 0 {
			delete(r.pods, v)
		}
	}
	delete(r.volumes, uid)
}

func (r releases) keep(known func(uid string) bool) {
	for uid := range maps.Clone(r.volumes) {
		if !known(uid) {
			r.drop(uid)
		}
	}
}

func (c *Controller) awaitRelease(uid string, volumes []ledger.VolumeID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.ended.volumes[uid]; !known {
		c.sweep()
	}
	c.ended.set(uid, volumes)
}

// AddEnded looks at ended pods that wait for their kubelet to release a volume. Safe for parallel use.
func (c *Controller) AddEnded(volume ledger.VolumeID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid := range c.ended.pods[volume] {
		c.queue.Add(uid)
	}
}
