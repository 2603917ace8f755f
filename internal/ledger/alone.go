// SPDX-License-Identifier: Apache-2.0

package ledger

import "slices"

// mountedAlone are nodes without a VolumeOnNode where moorage-node reports a mounted volume that the
// kubelet forgot.
type mountedAlone struct {
	volume VolumeID
	nodes  []NodeName // sorted; replaced, never changed
}

// MountedAlone returns, sorted, nodes where only moorage-node's report, even an outdated one, says that the
// volume is mounted.
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

// keepAllAlone checks two reports' forgotten volumes again.
func (l *Ledger) keepAllAlone(t *Touched, was, is *NodeWord, n NodeName) {
	for _, w := range []*NodeWord{was, is} {
		if w != nil {
			for _, v := range w.Forgotten {
				l.keepAlone(t, v, n)
			}
		}
	}
}

// touchable are volumes at a node, or only in moorage-node's report.
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
