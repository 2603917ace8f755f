// SPDX-License-Identifier: Apache-2.0

package arbiter_test

import (
	"maps"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// kubelet is one node's: it mounts what its node's volumesAttached names, and
// says in volumesInUse what it uses, before it uses it.
type kubelet struct {
	down    bool
	running map[string]bool                     // pods, by UID
	mounted map[ledger.VolumeID]map[string]bool // by pod UID
	ended   map[string]bool                     // pods that it has shut down, by UID
}

func newKubelet() *kubelet {
	return &kubelet{running: map[string]bool{}, mounted: map[ledger.VolumeID]map[string]bool{}, ended: map[string]bool{}}
}

// restart ends a kubelet and starts it again: what pods still want is mounted
// anew, which takes the report and the attachment; what nobody wants is still
// mounted until it unmounts it.
func (k *kubelet) restart(pods map[string]ledger.Pod) {
	k.running = map[string]bool{}
	for _, users := range k.mounted {
		maps.DeleteFunc(users, func(uid string, _ bool) bool { return pods[uid].UID != "" && pods[uid].Phase == ledger.PodLive })
	}
}

// reboot empties a kubelet's memory, and the machine's mounts with it.
func (k *kubelet) reboot() { *k = *newKubelet() }

// podsAt are the pods bound to a node, in the order of their UIDs.
func (c *cluster) podsAt(n ledger.NodeName) []ledger.Pod {
	var list []ledger.Pod
	for _, uid := range sortedKeys(c.pods) {
		if c.pods[uid].Node == n {
			list = append(list, c.pods[uid])
		}
	}
	return list
}

// tick lets one kubelet do all that it can, and says whether it did anything.
func (c *cluster) tick(n ledger.NodeName) bool {
	k := c.kubelets[n]
	if _, exists := c.nodes[n]; k == nil || k.down || !exists {
		return false
	}
	did := c.shutDown(n, k)
	did = c.unmount(n, k) || did
	did = c.tell(n, k) || did
	return c.mount(n, k) || did
}

// shutDown ends the containers of terminating pods.
func (c *cluster) shutDown(n ledger.NodeName, k *kubelet) bool {
	did := false
	for _, p := range c.podsAt(n) {
		if p.Phase == ledger.PodTerminating && !k.ended[p.UID] {
			k.ended[p.UID], did = true, true
			c.trace("kubelet %s: ended %s", n, p.Name)
		}
	}
	return did
}

// unmount takes the volumes from pods that are finished or gone, then lets
// the pod objects go.
func (c *cluster) unmount(n ledger.NodeName, k *kubelet) bool {
	did := false
	for _, v := range sortedVolumes(k.mounted) {
		for _, uid := range sortedKeys(k.mounted[v]) {
			if p, ok := c.pods[uid]; !ok || p.Phase == ledger.PodFinished || k.ended[uid] {
				delete(k.mounted[v], uid)
				did = true
				c.trace("kubelet %s: unmounted %s", n, volumeName(c, v))
			}
		}
		if len(k.mounted[v]) == 0 {
			delete(k.mounted, v)
		}
	}
	for _, p := range c.podsAt(n) {
		if k.ended[p.UID] {
			c.deletePod(p.UID)
			delete(k.running, p.UID)
			did = true
			c.trace("pod %s is gone", p.Name)
		}
	}
	return did
}

// tell reports volumesInUse.
func (c *cluster) tell(n ledger.NodeName, k *kubelet) bool {
	node := c.nodes[n]
	use := map[ledger.VolumeID]bool{}
	for v := range k.mounted {
		if d, known := c.drivers[v.Driver]; !known || d.AttachRequired {
			use[v] = true
		}
	}
	for _, p := range c.podsAt(n) {
		if p.Phase != ledger.PodFinished && !k.ended[p.UID] {
			for _, v := range c.podVolumes(p) {
				use[v] = true
			}
		}
	}
	list := sortedVolumes(use)
	if slices.Equal(list, node.InUse) && node.Reporting {
		return false
	}
	node.InUse, node.Reporting = list, true
	c.putNode(node)
	c.trace("kubelet %s: in use %s", n, volumeNames(c, list))
	return true
}

// mount mounts the volumes of pods that may be mounted.
func (c *cluster) mount(n ledger.NodeName, k *kubelet) bool {
	did := false
	for _, p := range c.podsAt(n) {
		if p.Phase != ledger.PodLive || k.running[p.UID] {
			continue
		}
		volumes := c.podVolumes(p)
		if !c.resolved(p) {
			continue
		}
		for _, v := range volumes {
			if !k.mounted[v][p.UID] && c.mountable(v, n) {
				c.judge.mounts(v, n)
				if k.mounted[v] == nil {
					k.mounted[v] = map[string]bool{}
				}
				k.mounted[v][p.UID], did = true, true
			}
		}
		if !slices.ContainsFunc(volumes, func(v ledger.VolumeID) bool { return !k.mounted[v][p.UID] }) {
			k.running[p.UID], did = true, true
			c.trace("kubelet %s: %s runs", n, p.Name)
		}
	}
	return did
}

// mountable is what the kubelet checks before it mounts: volumesInUse as it
// reported it, volumesAttached, and the VolumeAttachment.
func (c *cluster) mountable(v ledger.VolumeID, n ledger.NodeName) bool {
	node := c.nodes[n]
	if !slices.Contains(node.InUse, v) || !slices.Contains(node.Reported, v) {
		return false
	}
	if v.NoAttach() {
		return true
	}
	va, ok := c.attachments[ledger.AttachmentName(v, n)]
	return ok && va.Attached && !va.Deleting
}

// disks is where the volumes really are, and the faults that are planted.
type disks struct {
	at         map[ledger.VolumeID]map[ledger.NodeName]bool
	failAttach map[ledger.VolumeID]ledger.CallError
	failDetach map[ledger.VolumeID]ledger.CallError
	hangs      map[ledger.VolumeID]bool // a detach that is not answered
	lies       map[ledger.VolumeID]bool // the attach that fails has happened all the same
	stock      bool                     // the attacher does not know that a volume may stay
	// strict drivers refuse to attach what is elsewhere, or where they are not
	// registered, and the attacher tries again only when retry is over.
	strict bool
	retry  map[string]time.Time // by the attachment's name
}

func newDisks() disks {
	return disks{
		at:         map[ledger.VolumeID]map[ledger.NodeName]bool{},
		failAttach: map[ledger.VolumeID]ledger.CallError{},
		failDetach: map[ledger.VolumeID]ledger.CallError{},
		hangs:      map[ledger.VolumeID]bool{},
		lies:       map[ledger.VolumeID]bool{},
		retry:      map[string]time.Time{},
	}
}

// longestRetry is how long an attacher waits at most before it tries again an attach
// that has failed (external-attacher, --retry-interval-max).
const longestRetry = 5 * time.Minute

// refusal is why a strict driver does not attach a volume to a node now.
func (c *cluster) refusal(v ledger.VolumeID, n ledger.NodeName) ledger.CallError {
	if !slices.ContainsFunc(c.csinodes[n].Drivers, func(d ledger.DriverOnNode) bool { return d.Name == v.Driver }) {
		return ledger.CallError{Message: "CSINode " + string(n) + " does not contain driver " + v.Driver}
	}
	for at := range c.disks.at[v] {
		if at != n && c.isExclusive(v) {
			return ledger.CallError{Code: 9, Message: "it is attached to " + string(at)}
		}
	}
	return ledger.CallError{}
}

// refused is attacher's part for a strict driver: whether it does not attach, and
// whether it said so just now.
func (c *cluster) refused(va ledger.Attachment, v ledger.VolumeID) (refused, said bool) {
	if !c.disks.strict || c.now.Before(c.disks.retry[va.Name]) {
		return c.disks.strict, false
	}
	e := c.refusal(v, va.Node)
	if e.IsZero() {
		return false, false
	}
	c.disks.retry[va.Name] = c.now.Add(longestRetry)
	va.AttachError = e
	c.putAttachment(va)
	c.trace("attacher: %s at %s: %s", volumeName(c, v), va.Node, e.Message)
	return true, true
}

// attacher lets the CSI driver's attacher do one VolumeAttachment, and says
// whether it did anything.
func (c *cluster) attacher(name string) bool {
	va := c.attachments[name]
	v, ok := c.source(va)
	switch {
	case !ok:
		return c.unknownSource(va)
	case va.Deleting:
		return c.unpublish(va, v)
	case va.Attached:
		return false
	}
	if refused, said := c.refused(va, v); refused {
		return said
	}
	if e := c.disks.failAttach[v]; !e.IsZero() {
		if c.disks.lies[v] {
			c.publish(v, va.Node)
		}
		if va.AttachError == e {
			return false
		}
		va.AttachError = e
		c.putAttachment(va)
		c.trace("attacher: %s at %s: %s", volumeName(c, v), va.Node, e.Message)
		return true
	}
	c.publish(v, va.Node)
	va.Attached, va.AttachError = true, ledger.CallError{}
	c.putAttachment(va)
	c.trace("attacher: attached %s to %s", volumeName(c, v), va.Node)
	return true
}

func (c *cluster) publish(v ledger.VolumeID, n ledger.NodeName) {
	c.judge.publishes(v, n)
	if c.disks.at[v] == nil {
		c.disks.at[v] = map[ledger.NodeName]bool{}
	}
	c.disks.at[v][n] = true
}

// unknownSource: an attacher does nothing without the PersistentVolume, and
// says so.
func (c *cluster) unknownSource(va ledger.Attachment) bool {
	e := ledger.CallError{Message: "persistentvolume " + va.PersistentVolume + " not found"}
	book := &va.AttachError
	if va.Deleting {
		book = &va.DetachError
	}
	if va.Attached && !va.Deleting || *book == e {
		return false
	}
	*book = e
	c.putAttachment(va)
	c.trace("attacher: %s at %s: %s", va.Name[:8], va.Node, e.Message)
	return true
}

func (c *cluster) unpublish(va ledger.Attachment, v ledger.VolumeID) bool {
	if c.disks.hangs[v] {
		return false
	}
	if e := c.disks.failDetach[v]; !e.IsZero() {
		if va.Wanted && !c.disks.stock { // as moorage-attacher does
			c.deleteAttachment(va.Name)
			c.trace("attacher: left %s at %s", volumeName(c, v), va.Node)
			return true
		}
		if va.DetachError == e {
			return false
		}
		va.DetachError = e
		c.putAttachment(va)
		c.trace("attacher: %s from %s: %s", volumeName(c, v), va.Node, e.Message)
		return true
	}
	c.judge.unpublishes(v, va.Node)
	delete(c.disks.at[v], va.Node)
	c.deleteAttachment(va.Name)
	c.trace("attacher: detached %s from %s", volumeName(c, v), va.Node)
	return true
}

// source is the volume of a VolumeAttachment.
func (c *cluster) source(va ledger.Attachment) (ledger.VolumeID, bool) {
	if va.Inline != (ledger.VolumeID{}) {
		return va.Inline, true
	}
	pv, ok := c.pvs[va.PersistentVolume]
	return pv.Volume, ok
}

// volumeName names a volume for people: by its PersistentVolumes.
func volumeName(c *cluster, v ledger.VolumeID) string {
	for _, name := range slices.Sorted(maps.Keys(c.pvs)) {
		if c.pvs[name].Volume == v {
			return name
		}
	}
	return v.String()
}

func volumeNames(c *cluster, list []ledger.VolumeID) []string {
	names := make([]string, 0, len(list))
	for _, v := range list {
		names = append(names, volumeName(c, v))
	}
	return names
}
