// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

// stock is kube-controller-manager's attach/detach controller for Cooperative mode. It does not watch
// VolumeAttachments.
type stock struct {
	c     *cluster
	knows map[world.At]bool // its actual state of world
	down  bool
}

func (c *cluster) beside() {
	c.Judge.Cooperative = true
	c.stock = &stock{c: c, knows: map[world.At]bool{}}
}

func (s *script) cooperative(args) {
	s.arb.Cooperative = true
	s.beside()
}

func (s *script) standalone(args) {
	s.arb.Cooperative = false
	s.stock, s.Judge.Cooperative = nil, false
	s.cluster.restart()
}

func (s *script) stockCommand(a args) {
	s.cluster.stock.down = a.flag("down")
	if a.flag("restart") {
		s.cluster.stock.start()
	}
}

func (k *stock) start() {
	k.knows = map[world.At]bool{}
	for _, node := range list[ledger.NodeState](k.c, world.Nodes) {
		for _, v := range node.Reported {
			k.knows[world.At{Volume: v, Node: node.Name}] = true
		}
	}
	for _, va := range list[ledger.Attachment](k.c, world.Attachments) {
		if v, ok := k.c.Source(va); ok {
			k.knows[world.At{Volume: v, Node: va.Node}] = true
		}
	}
}

func (k *stock) work() bool {
	if k == nil || k.down {
		return false
	}
	did := false
	for _, node := range list[ledger.NodeState](k.c, world.Nodes) {
		wanted := map[ledger.VolumeID]bool{}
		for _, p := range k.c.PodsAt(node.Name) {
			if p.Phase != ledger.PodFinished {
				volumes, _ := k.c.VolumesOf(p)
				for _, v := range volumes {
					wanted[v] = true
				}
			}
		}
		for _, v := range k.attachedTo(node.Name) {
			if !wanted[v] {
				did = k.detach(v, node.Name) || did
			}
		}
		for _, v := range sortedVolumes(wanted) {
			did = k.attach(v, node.Name) || did
		}
	}
	return did
}

func (k *stock) attachedTo(n ledger.NodeName) []ledger.VolumeID {
	var volumes []ledger.VolumeID
	for at := range k.knows {
		if at.Node == n {
			volumes = append(volumes, at.Volume)
		}
	}
	return world.SortVolumes(volumes)
}

func (k *stock) report(n ledger.NodeName, volumes []ledger.VolumeID) {
	k.c.ask(world.Request{Do: world.WriteReported, Node: n, InUse: volumes, Manager: true})
}

func (k *stock) detach(v ledger.VolumeID, n ledger.NodeName) bool {
	node, _ := k.c.Node(n)
	if slices.Contains(node.InUse, v) {
		return false
	}
	if i := slices.Index(node.Reported, v); i >= 0 {
		k.report(n, slices.Delete(slices.Clone(node.Reported), i, i+1))
		k.c.trace("stock: %s is no longer reported at %s", volumeName(k.c, v), n)
		return true
	}
	va, ok := k.c.Attachment(ledger.AttachmentName(v, n))
	switch {
	case !ok:
		delete(k.knows, world.At{Volume: v, Node: n})
		return false
	case va.Deleting:
		return false
	}
	k.c.ask(world.Request{Do: world.DropAttachment, Key: va.Name, Manager: true})
	k.c.trace("stock: deleted the attachment of %s at %s", volumeName(k.c, v), n)
	return true
}

func (k *stock) attach(v ledger.VolumeID, n ledger.NodeName) bool {
	for at := range k.knows {
		if at.Volume == v && at.Node != n && k.c.Exclusive(v) {
			return false
		}
	}
	name := ledger.AttachmentName(v, n)
	va, ok := k.c.Attachment(name)
	node, _ := k.c.Node(n)
	k.knows[world.At{Volume: v, Node: n}] = true // an attach in flight also keeps others from the volume
	if !ok {
		k.c.ask(world.Request{Do: world.CreateAttachment, Manager: true, Fact: ledger.Attachment{
			Name: name, Driver: v.Driver, Node: n, PersistentVolume: volumeName(k.c, v),
		}})
		k.c.trace("stock: created an attachment of %s at %s", volumeName(k.c, v), n)
		return true
	}
	if !va.Attached || va.Deleting || slices.Contains(node.Reported, v) {
		return false
	}
	k.report(n, append(slices.Clone(node.Reported), v))
	k.c.trace("stock: %s is reported at %s", volumeName(k.c, v), n)
	return true
}
