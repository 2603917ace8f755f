// SPDX-License-Identifier: Apache-2.0

package ledger

import "slices"

// mountedAlone are nodes with a mounted volume that their kubelets have forgotten, as moorage-node
// reports, and for which the ledger has no VolumeOnNode.
type mountedAlone struct {
	volume VolumeID
	nodes  []NodeName // sorted; replaced, never changed
}

// MountedAlone returns, sorted, the nodes where only moorage-node's report says that the volume is
// mounted. It does not ask whether that report still counts.
func (s Snapshot) MountedAlone(v VolumeID) []NodeName {
	if rec := s.facts.alone.get(v); rec != nil {
		return rec.nodes
	}
	return nil
}

// forgotMounted says whether a report has a mounted volume that the kubelet has forgotten.
func (w *NodeWord) forgotMounted(v VolumeID) bool {
	if w == nil {
		return false
	}
	_, forgot := slices.BinarySearchFunc(w.Forgotten, v, VolumeID.Compare)
	_, mounted := slices.BinarySearchFunc(w.Mounted, v, VolumeID.Compare)
	return forgot && mounted
}

// keepAlone checks again whether only the node's report says that a volume is mounted there.
func (l *Ledger) keepAlone(t *Touched, v VolumeID, n NodeName) {
	var was []NodeName
	if rec := l.facts.alone.get(v); rec != nil {
		was = rec.nodes
	}
	node := l.facts.nodes.get(n)
	is := node != nil && node.Word.forgotMounted(v) && l.facts.volumes.get(v).OnNode(n) == nil
	i, listed := slices.BinarySearch(was, n)
	switch {
	case is == listed:
		return
	case is:
		l.facts.alone.put(l.gen, v, &mountedAlone{volume: v, nodes: slices.Insert(slices.Clone(was), i, n)})
	case len(was) == 1:
		l.facts.alone.del(l.gen, v)
	default:
		l.facts.alone.put(l.gen, v, &mountedAlone{volume: v, nodes: removeAt(was, i)})
	}
	t.volume(v)
}

// keepAllAlone checks again all volumes that two reports of a node have as forgotten.
func (l *Ledger) keepAllAlone(t *Touched, was, is *NodeWord, n NodeName) {
	for _, w := range []*NodeWord{was, is} {
		if w != nil {
			for _, v := range w.Forgotten {
				l.keepAlone(t, v, n)
			}
		}
	}
}

// touchable are the volumes that a change of a node may concern: volumes with a VolumeOnNode there, and
// volumes that only moorage-node's report names.
func (l *Ledger) touchable(n *Node) []VolumeID {
	list := n.At()
	if n.Word != nil {
		for _, v := range n.Word.Forgotten {
			if rec := l.facts.alone.get(v); rec != nil && slices.Contains(rec.nodes, n.Name) {
				list = append(list, v)
			}
		}
	}
	return list
}
