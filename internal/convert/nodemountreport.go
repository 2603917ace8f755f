// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// NodeWord makes a fact of a NodeMountReport. A volume not known to be absent is there. An unreadable
// driver or handle makes the report incomplete, unless the folder identifies the volume.
func NodeWord(n *v1alpha1.NodeMountReport) ledger.NodeWord {
	status := &n.Status
	word := ledger.NodeWord{
		Node: ledger.NodeName(n.Name), UID: string(n.UID), Version: n.ResourceVersion,
		NodeUID: string(status.NodeUID), BootID: status.BootID, Look: n.Spec.Look,
		Looked: status.Looked,
		Whole:  len(status.Unknown) == 0 && (!status.Truncated || len(status.Unlisted) > 0),
	}
	if word.Looked > word.Look {
		word.Looked = 0 // an unasked look: another object's status, or edited
	}
	for _, u := range status.Unlisted {
		word.Unlisted = append(word.Unlisted, ledger.Unlisted{Driver: u.Driver, Digests: slices.Sorted(slices.Values(u.Digests))})
	}
	slices.SortFunc(word.Unlisted, func(a, b ledger.Unlisted) int { return strings.Compare(a.Driver, b.Driver) })
	for i := range status.Volumes {
		v := &status.Volumes[i]
		id := ledger.VolumeID{Driver: v.Driver, Handle: v.Handle}
		switch {
		case v.Driver == "" || v.Handle == "":
			if unread, told := UnreadOf(v); told {
				word.Unread = append(word.Unread, unread)
			} else {
				word.Whole = false
			}
		case v.Staged != v1alpha1.NodeNo || v.Mounted != v1alpha1.NodeNo || len(v.Published) > 0 || v.MoreFileSystems:
			word.Has = append(word.Has, id)
			if mounted(v) {
				word.Mounted = append(word.Mounted, id)
			}
			if v.Forgotten {
				word.Forgotten = append(word.Forgotten, id)
			}
		}
		if driver, digest := stagedFolder(v); v.Handle != "" && digest != "" && (driver != v.Driver || digest != ledger.HandleDigest(v.Handle)) {
			// A mount there is of the folder's volume.
			word.Unread = append(word.Unread, ledger.Unread{Driver: driver, Digest: digest, There: v.Mounted != v1alpha1.NodeNo})
		}
	}
	return word
}

// mounted is true in doubt.
func mounted(v *v1alpha1.ReportedVolume) bool {
	return v.Mounted != v1alpha1.NodeNo || v.MoreFileSystems || v.MorePods || slices.ContainsFunc(v.Published, func(p v1alpha1.PublishedPod) bool { return p.Mounted != v1alpha1.NodeNo })
}

// UnreadOf reads an entry's folder without driver or handle; false: the volume is unidentified. An
// unreadable staging record without a mount leaves open whether a file system's volume is there: the
// kubelet writes it before each call of the driver, and drivers need not mount anything.
func UnreadOf(v *v1alpha1.ReportedVolume) (ledger.Unread, bool) {
	driver, digest := stagedFolder(v)
	switch {
	case v.Handle != "":
	case digest != "" && v.Driver == driver:
		return ledger.Unread{Driver: driver, Digest: digest, There: v.Mounted != v1alpha1.NodeNo, Forgotten: v.Forgotten}, true
	case isSubpath(v):
		return ledger.Unread{PersistentVolume: v.PersistentVolume, Pod: strings.Split(v.Path, "/")[1], There: true, Forgotten: v.Forgotten}, true
	case isOwnVolume(v):
		return ledger.Unread{PersistentVolume: v.PersistentVolume, Pod: strings.Split(v.Path, "/")[1]}, true
	case isUnread(v):
		unread := ledger.Unread{PersistentVolume: v.PersistentVolume}
		if len(v.Published) > 0 {
			unread.Pod = v.Published[0].PodUID
		}
		return unread, true
	case v.Mode == "Block" && v.Driver == "" && v.PersistentVolume != "":
		there := v.Staged != v1alpha1.NodeNo || v.Mounted != v1alpha1.NodeNo || len(v.Published) > 0
		return ledger.Unread{PersistentVolume: v.PersistentVolume, There: there, Forgotten: v.Forgotten}, true
	}
	return ledger.Unread{}, false
}

// stagedFolder is the driver and the handle's digest in a path; empty for another form.
func stagedFolder(v *v1alpha1.ReportedVolume) (driver, digest string) {
	parts := strings.Split(v.Path, "/")
	if v.Mode != "Filesystem" || len(parts) != 6 || parts[0] != "plugins" || parts[1] != "kubernetes.io" || parts[2] != "csi" || parts[5] != "globalmount" {
		return "", ""
	}
	if sum, err := hex.DecodeString(parts[4]); err != nil || len(sum) != sha256.Size || parts[4] != hex.EncodeToString(sum) {
		return "", ""
	}
	return parts[3], parts[4]
}

// isSubpath: no pod's folder names the subpath; its path has the PersistentVolume's name.
func isSubpath(v *v1alpha1.ReportedVolume) bool {
	parts := strings.Split(v.Path, "/")
	return isNameless(v) && len(parts) == 4 && parts[0] == "pods" && parts[2] == "volume-subpaths" && parts[3] == v.PersistentVolume
}

// isOwnVolume: a pod's folder records the pod's own volume, but the PersistentVolume of its name may be
// mounted too.
func isOwnVolume(v *v1alpha1.ReportedVolume) bool {
	parts := strings.Split(v.Path, "/")
	return isNameless(v) && v.Mounted == v1alpha1.NodeYes && len(parts) == 5 &&
		parts[0] == "pods" && parts[2] == "volumes" && parts[3] == "kubernetes.io~csi" && parts[4] == v.PersistentVolume
}

// isNameless: only a PersistentVolume's name identifies the file system's volume.
func isNameless(v *v1alpha1.ReportedVolume) bool {
	return v.Driver == "" && v.Handle == "" && v.PersistentVolume != "" && v.Mode == "Filesystem"
}

// isUnread: a pod's unreadable record, nothing mounted. Only the folder's PersistentVolume may be there.
func isUnread(v *v1alpha1.ReportedVolume) bool {
	return v.Driver == "" && v.Handle == "" && v.PersistentVolume != "" && v.Mode == "Filesystem" &&
		v.Staged == v1alpha1.NodeNo && v.Mounted == v1alpha1.NodeNo &&
		!slices.ContainsFunc(v.Published, func(p v1alpha1.PublishedPod) bool { return p.Mounted != v1alpha1.NodeNo })
}
