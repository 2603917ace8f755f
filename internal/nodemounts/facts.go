// SPDX-License-Identifier: Apache-2.0

package nodemounts

import (
	"cmp"
)

// Answer is Yes, No or Unknown.
type Answer string

// Never read Unknown as No.
const (
	Yes     Answer = "Yes"
	No      Answer = "No"
	Unknown Answer = "Unknown"
)

// Mode is how a volume is given to pods.
type Mode string

const (
	Filesystem Mode = "Filesystem"
	Block      Mode = "Block"
)

// Bounds of the facts. A part beyond a bound is reported as there, or as unknown; the other parts stay
// unchanged.
const (
	maxEntries   = 1 << 17  // of one folder: more than a pod has room for
	maxVolumes   = 4096     // of one node; Unlisted has the rest
	maxPublished = 256      // of each volume
	maxUnknown   = 32       // of each node
	maxRecord    = 64 << 10 // bytes
	maxDriver    = 253      // characters, as of a CSIDriver's name
	maxHandle    = 4096     // characters, as in a VolumeHold
	maxName      = 253      // characters, of a PersistentVolume or a pod's folder
	maxLine      = 128      // bytes of a machine's names
	maxReason    = 512      // characters
)

// Facts is the result of one reading.
type Facts struct {
	// Volumes are sorted by path.
	Volumes []Volume
	// Unlisted are further volumes that are there, or may be, sorted.
	Unlisted []Brief
	// Alive are the volumes' living file systems, for the Kernel of the next look.
	Alive []Alive
	// Unknown names the unreadable parts, and why. While it is not empty, there may be volumes in neither
	// list.
	Unknown []string
}

// briefLetters: two volumes with the same letters both count as there.
const briefLetters = 8

// Brief names a volume by its driver and the first letters of its handle's sha256.
type Brief struct{ Driver, Digest string }

// Compare orders Briefs.
func (b Brief) Compare(other Brief) int {
	return cmp.Or(cmp.Compare(b.Driver, other.Driver), cmp.Compare(b.Digest, other.Digest))
}

// Brief names the volume by its handle and by its path; none without both.
func (v *Volume) Brief() []Brief { return briefly(v.Path, v.Driver, v.Handle) }

// Volume is one CSI volume at one staging path.
type Volume struct {
	// Driver and Handle identify the volume; empty if unreadable. Then for a pod's record, PersistentVolume
	// is the folder's name, and Path the folder.
	Driver, Handle string
	// PersistentVolume is its name in a folder, the first by alphabet; empty without one.
	PersistentVolume string
	Mode             Mode
	// Path is the volume's staging path, used or not, below the kubelet's folder.
	Path string
	// Staged: the kubelet's record has the volume staged, or something is mounted at Path. The record
	// exists from before the driver's call until its answer that nothing is left.
	Staged Answer
	// Mounted: something is mounted at or below Path. Drivers need not mount there, least of all for Block.
	Mounted Answer
	// Published are its pods, sorted by UID.
	Published []Publication
	// MorePods: not all are kept.
	MorePods bool
	// FileSystems are sorted.
	FileSystems []FileSystem
	// MoreFileSystems: the kernel has more, or may have.
	MoreFileSystems bool
	// Forgotten: it is staged, mounted or published, and no pod's folder names it.
	Forgotten bool
	// Unknown names the volume's unreadable parts, and why; empty: none.
	Unknown string

	named    bool // by a pod's folder
	recorded bool // by a block volume's record
	untold   bool // an earlier process had no room for a file system
}

// Publication is one pod that has a volume.
type Publication struct {
	PodUID string
	// PodFolder: the pod's folder names the volume, and not only the driver's own path of a block volume.
	PodFolder bool
	// Mounted: something is mounted at the volume's path for this pod.
	Mounted Answer
}
