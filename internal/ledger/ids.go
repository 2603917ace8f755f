// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"strings"
)

// VolumeID names a volume: the CSI driver and the driver's volume handle. Two
// PersistentVolumes with the same pair are one volume. In-tree plugins that
// attach without a VolumeAttachment (iSCSI, FC) use their plugin name, such
// as "kubernetes.io/iscsi", as the driver.
type VolumeID struct{ Driver, Handle string }

// String is the volume name that kubelets report, without the plugin's
// prefix: "<driver>^<handle>" (pkg/volume/csi/csi_plugin.go).
func (v VolumeID) String() string {
	switch {
	case v.IsClaim():
		return v.Driver + "^(claim " + v.Handle[len(claimPrefix):] + ")"
	case strings.HasPrefix(v.Handle, sourcePrefix):
		return v.Driver + "^(attachment " + v.Handle[len(sourcePrefix):] + ")"
	}
	return v.Driver + "^" + v.Handle
}

// IsZero says whether v names nothing.
func (v VolumeID) IsZero() bool { return v == VolumeID{} }

// Handles that no driver gives out, because a CSI handle holds no NUL.
const (
	claimPrefix  = "\x00claim/"
	sourcePrefix = "\x00attachment/"
)

// UnboundClaim names the future volume of an unbound claim, for the slot that the volume will need.
func UnboundClaim(driver, claimUID string) VolumeID {
	return VolumeID{driver, claimPrefix + claimUID}
}

// IsClaim says whether v stands for an unbound claim.
func (v VolumeID) IsClaim() bool { return strings.HasPrefix(v.Handle, claimPrefix) }

// unknownSource names the volume of a VolumeAttachment if its PersistentVolume was not seen. It takes a
// slot: unknown counts.
func unknownSource(driver, attachment string) VolumeID {
	return VolumeID{driver, sourcePrefix + attachment}
}

// IsReal says whether v is a volume that a driver knows, not none (IsZero) or a placeholder.
func (v VolumeID) IsReal() bool { return !v.IsZero() && !strings.HasPrefix(v.Handle, "\x00") }

// NoAttach says whether v needs no VolumeAttachment: the in-tree plugins iSCSI and FC have an empty attach.
// The kubelet still waits for volumesAttached.
func (v VolumeID) NoAttach() bool { return strings.HasPrefix(v.Driver, "kubernetes.io/") }

// Compare orders volumes by driver, then handle.
func (v VolumeID) Compare(w VolumeID) int {
	return cmp.Or(cmp.Compare(v.Driver, w.Driver), cmp.Compare(v.Handle, w.Handle))
}

// NodeName is the name of a Node object, or Detached.
type NodeName string

// Detached stands for no node: a ticket for it asks that its volumes be attached nowhere, and a hold that
// names it keeps its volume from every node. No Node has such a name. Nothing is ever attached or mounted
// there, and it has no slots.
const Detached NodeName = "(detached)"

// ClaimKey names a PersistentVolumeClaim.
type ClaimKey struct{ Namespace, Name string }

func (c ClaimKey) String() string { return c.Namespace + "/" + c.Name }

// TicketID names a VolumeTicket.
type TicketID struct{ Namespace, Name string }

func (t TicketID) String() string { return t.Namespace + "/" + t.Name }

// Newer says whether resource version a is newer than b. Versions of a resource type are comparable as
// numbers since Kubernetes 1.35 (KEP-5504). A version that is not a number is newer: it was seen last.
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
