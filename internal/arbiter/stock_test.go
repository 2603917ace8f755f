// SPDX-License-Identifier: Apache-2.0

package arbiter_test

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// stock is kube-controller-manager's attach/detach controller, as far as it
// matters to one that works beside it: what it knows comes from pods and, at
// its start, from nodes and VolumeAttachments. It does not watch the latter.
type stock struct {
	c     *cluster
	knows map[ledger.VolumeID]map[ledger.NodeName]bool // its actual state of world
	down  bool
}

// cooperative puts the attach/detach controller beside Moorage's: "beforeBind"
// attaches for tickets, too.
func (s *script) cooperative(a args) {
	s.arb.Cooperative, s.arb.BeforeBind = true, a.flag("beforeBind")
	s.cluster.stock = &stock{c: s.cluster, knows: map[ledger.VolumeID]map[ledger.NodeName]bool{}}
}

// stockCommand stops the attach/detach controller, or starts it anew.
func (s *script) stockCommand(a args) {
	s.cluster.stock.down = a.flag("down")
	if a.flag("restart") {
		s.cluster.stock.start()
	}
}

// start takes in what nodes report and what attachments there are.
func (k *stock) start() {
	k.knows = map[ledger.VolumeID]map[ledger.NodeName]bool{}
	for n, node := range k.c.nodes {
		for _, v := range node.Reported {
			k.know(v, n)
		}
	}
	for _, va := range k.c.attachments {
		if v, ok := k.c.source(va); ok {
			k.know(v, va.Node)
		}
	}
}

func (k *stock) know(v ledger.VolumeID, n ledger.NodeName) {
	if k.knows[v] == nil {
		k.knows[v] = map[ledger.NodeName]bool{}
	}
	k.knows[v][n] = true
}

// work does one round, and says whether it did anything.
func (k *stock) work() bool {
	if k == nil || k.down {
		return false
	}
	did := false
	for _, n := range sortedKeys(k.c.nodes) {
		wanted := map[ledger.VolumeID]bool{}
		for _, p := range k.c.podsAt(n) {
			if p.Phase != ledger.PodFinished {
				for _, v := range k.c.podVolumes(p) {
					wanted[v] = true
				}
			}
		}
		for _, v := range sortedVolumes(k.knows) {
			if k.knows[v][n] && !wanted[v] {
				did = k.detach(v, n) || did
			}
		}
		for _, v := range sortedVolumes(wanted) {
			did = k.attach(v, n) || did
		}
	}
	return did
}

// detach takes a volume out of volumesAttached, then deletes its attachment,
// by name.
func (k *stock) detach(v ledger.VolumeID, n ledger.NodeName) bool {
	node := k.c.nodes[n]
	if slices.Contains(node.InUse, v) {
		return false
	}
	if i := slices.Index(node.Reported, v); i >= 0 {
		node.Reported = slices.Delete(slices.Clone(node.Reported), i, i+1)
		k.c.putNode(node)
		k.c.trace("stock: %s is no longer reported at %s", volumeName(k.c, v), n)
		return true
	}
	va, ok := k.c.attachments[ledger.AttachmentName(v, n)]
	switch {
	case !ok:
		delete(k.knows[v], n)
		return false
	case va.Deleting:
		return false
	}
	k.c.judge.deletes(v, n)
	va.Deleting = true
	k.c.putAttachment(va)
	k.c.trace("stock: deleted the attachment of %s at %s", volumeName(k.c, v), n)
	return true
}

// attach creates an attachment unless there is one, and reports what is
// attached. An exclusive volume that it knows at another node it leaves there.
func (k *stock) attach(v ledger.VolumeID, n ledger.NodeName) bool {
	for other := range k.knows[v] {
		if other != n && k.c.isExclusive(v) {
			return false
		}
	}
	name := ledger.AttachmentName(v, n)
	va, ok := k.c.attachments[name]
	node := k.c.nodes[n]
	k.know(v, n) // an attach that is under way keeps others from the volume, too
	if !ok {
		k.c.putAttachment(ledger.Attachment{
			Name: name, UID: k.c.attachmentUID(), Driver: v.Driver, Node: n, PersistentVolume: volumeName(k.c, v), NodeID: "id-" + string(n),
		})
		k.c.trace("stock: created an attachment of %s at %s", volumeName(k.c, v), n)
		return true
	}
	if !va.Attached || va.Deleting || slices.Contains(node.Reported, v) {
		return false
	}
	node.Reported = append(slices.Clone(node.Reported), v)
	k.c.putNode(node)
	k.c.trace("stock: %s is reported at %s", volumeName(k.c, v), n)
	return true
}
