// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"strings"
)

// VolumeID is a CSI driver and its volume handle: equal pairs are the same volume. In-tree plugins without
// VolumeAttachments (iSCSI, FC) use their plugin name, like "kubernetes.io/iscsi".
type VolumeID struct{ Driver, Handle string }

// String is the kubelets' volume name without the plugin's prefix: "<driver>^<handle>"
// (pkg/volume/csi/csi_plugin.go).
func (v VolumeID) String() string {
	switch {
	case v.IsClaim():
		return v.Driver + "^(claim " + v.Handle[len(claimPrefix):] + ")"
	case strings.HasPrefix(v.Handle, sourcePrefix):
		return v.Driver + "^(attachment " + v.Handle[len(sourcePrefix):] + ")"
	}
	return v.Driver + "^" + v.Handle
}

// IsZero: v names nothing.
func (v VolumeID) IsZero() bool { return v == VolumeID{} }

// No driver gives out these handles: a CSI handle holds no NUL.
const (
	claimPrefix  = "\x00claim/"
	sourcePrefix = "\x00attachment/"
)

// UnboundClaim names an unbound claim's future volume, for its slot.
func UnboundClaim(driver, claimUID string) VolumeID {
	return VolumeID{driver, claimPrefix + claimUID}
}

// IsClaim: v stands for an unbound claim.
func (v VolumeID) IsClaim() bool { return strings.HasPrefix(v.Handle, claimPrefix) }

// unknownSource is the volume of a VolumeAttachment with an unseen PersistentVolume. It takes a slot:
// unknown counts.
func unknownSource(driver, attachment string) VolumeID {
	return VolumeID{driver, sourcePrefix + attachment}
}

// IsReal: a driver knows v; it is not zero or a placeholder.
func (v VolumeID) IsReal() bool { return !v.IsZero() && !strings.HasPrefix(v.Handle, "\x00") }

// NoAttach: in-tree iSCSI and FC need no VolumeAttachment. The kubelet still waits for volumesAttached.
func (v VolumeID) NoAttach() bool { return strings.HasPrefix(v.Driver, "kubernetes.io/") }

// Compare orders by driver, then handle.
func (v VolumeID) Compare(w VolumeID) int {
	return cmp.Or(cmp.Compare(v.Driver, w.Driver), cmp.Compare(v.Handle, w.Handle))
}

// NodeName is a Node's name, or Detached.
type NodeName string

// Detached is no node: its tickets and holds keep a volume from every node. No Node has the name, nothing
// is there, and it has no slots.
const Detached NodeName = "(detached)"

// ClaimKey names a PersistentVolumeClaim.
type ClaimKey struct{ Namespace, Name string }

func (c ClaimKey) String() string { return c.Namespace + "/" + c.Name }

// TicketID names a VolumeTicket.
type TicketID struct{ Namespace, Name string }

func (t TicketID) String() string { return t.Namespace + "/" + t.Name }

// Newer compares resource versions as numbers, since Kubernetes 1.35 (KEP-5504). A version that is no
// number is newer: it was seen last.
func Newer(a, b string) bool {
	if !isNumber(a) || !isNumber(b) {
		return true
	}
	if len(a) != len(b) {
		return len(a) > len(b)
	}
	return a > b
}

func isNumber(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return len(s) > 0 && s[0] != '0'
}
