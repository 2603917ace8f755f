// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Orphan is a VolumeAttachment that nobody will detach as things are.
type Orphan struct {
	Attachment string `json:"attachment"`
	Volume     string `json:"volume"`
	Node       string `json:"node"`
	Message    string `json:"message"`
	Fix        string `json:"fix"`
}

// Orphans lists the attachments that have lost their node, their volume, or
// were never Moorage's: it reports them and leaves them alone. An object that can't be
// seen is not one that is gone: its attachments are no orphans.
func (w *World) Orphans() []Orphan {
	var list []Orphan
	for v := range w.Snapshot.Volumes() {
		for i := range v.NodeVolumes {
			for _, va := range v.NodeVolumes[i].Attachments() {
				if message, fix := w.orphaned(v, &v.NodeVolumes[i], va); message != "" {
					list = append(list, Orphan{va.Name, v.ID.String(), string(va.Node), message, fix})
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b Orphan) int { return cmp.Compare(a.Attachment, b.Attachment) })
	return list
}

// untilGone says for how long a volume counts as in use at a node that does not exist.
func (w *World) untilGone(v *ledger.Volume, p *ledger.NodeVolume) string {
	verdict, _ := w.Arbiter.SafeToDetach(w.Snapshot, v, p, w.Now)
	if verdict.Allowed() || len(verdict.Reasons) == 0 {
		return ""
	}
	return ": " + w.reason(verdict.First(), nil).Message
}

func (w *World) orphaned(v *ledger.Volume, p *ledger.NodeVolume, va *ledger.Attachment) (message, fix string) {
	node := w.Snapshot.Node(p.Node)
	switch {
	case !v.ID.IsReal() && w.unseen("persistentvolumes"):
		return "", ""
	case !v.ID.IsReal():
		return fmt.Sprintf("its PersistentVolume %s does not exist", va.PersistentVolume),
			"Detach the volume with the storage's own tools if it still is attached, then delete the VolumeAttachment."
	case !va.Own():
		return "its name is not the one that its volume and node lead to: somebody else made it, and no kubelet looks for it",
			"Find its maker in metadata.managedFields, and have them delete it."
	case (node == nil || !node.Exists) && !w.unseen("nodes"):
		return fmt.Sprintf("its node %s does not exist%s", p.Node, w.untilGone(v, p)),
			"If the machine lives, restart its kubelet: it makes the Node again, and the volumes leave as ever. If it is gone for certain, see at its console, or in the cloud, that it is powered off: a volume that two nodes write is destroyed. Then wait for the time, or delete the VolumeAttachment."
	case !w.Snapshot.AttachRequired(v.ID.Driver) && !w.unseen("csidrivers.storage.k8s.io"):
		return fmt.Sprintf("driver %s needs no attachments any more", v.ID.Driver), "Delete the VolumeAttachment."
	}
	return "", ""
}
