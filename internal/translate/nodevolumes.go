// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// NodeWord makes a fact of a NodeVolumes. Whatever is not known to be absent is there; a
// volume of which the driver or the handle could not be read leaves the word not whole.
func NodeWord(n *v1alpha1.NodeVolumes) ledger.NodeWord {
	status := &n.Status
	word := ledger.NodeWord{
		Node: ledger.NodeName(n.Name), UID: string(n.UID), Version: n.ResourceVersion,
		NodeUID: string(status.NodeUID), BootID: status.BootID, Look: n.Spec.Look, Looked: status.Looked,
		Whole: !status.Truncated && len(status.Unknown) == 0,
	}
	for i := range status.Volumes {
		v := &status.Volumes[i]
		switch {
		case v.Driver == "" || v.Handle == "":
			word.Whole = false
		case v.Staged != v1alpha1.NodeNo || v.Mounted != v1alpha1.NodeNo || len(v.Published) > 0:
			word.Has = append(word.Has, ledger.VolumeID{Driver: v.Driver, Handle: v.Handle})
		}
	}
	return word
}
