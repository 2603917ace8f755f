// SPDX-License-Identifier: Apache-2.0

package nodemounts

import (
	"cmp"
)

// Answer is the answer to a question.
type Answer string

// The answers. Unknown is never to be read as No.
const (
	Yes     Answer = "Yes"
	No      Answer = "No"
	Unknown Answer = "Unknown"
)

// Mode is how a volume is given to pods.
type Mode string

// The modes.
const (
	Filesystem Mode = "Filesystem"
	Block      Mode = "Block"
)

// Bounds of the facts. A part beyond a bound is reported as there, or as unknown; the other parts stay
// unchanged.
const (
	maxEntries   = 1 << 17  // of one folder: more than a pod has room for, and a node has pods
	maxVolumes   = 4096     // of one node; Unlisted has the rest
	maxPublished = 256      // of each volume
	maxUnknown   = 32       // of each node
	maxRecord    = 64 << 10 // bytes of a vol_data.json
	maxDriver    = 253      // characters, as of a CSIDriver's name
	maxHandle    = 4096     // characters, as in a VolumeHold
	maxName      = 253      // characters of a PersistentVolume's name, and of a pod's folder's
	maxLine      = 128      // bytes of a machine's names
	maxReason    = 512      // characters of a reason
)

// Facts is what one reading found.
type Facts struct {
	// Volumes are sorted by their paths.
	Volumes []Volume
	// Unlisted are volumes that are there, or may be, beside those listed, sorted.
	Unlisted []Brief
	// Alive are the file systems of volumes that the kernel has, for the Kernel of the next look.
	Alive []Alive
	// Unknown names the unreadable parts, and why. While it is not empty, there may be volumes that are
	// neither listed nor among Unlisted.
	Unknown []string
}

// briefLetters is how many letters of a handle's sha256 a Brief has. If two volumes have the same letters,
// which is rare, both count as there.
const briefLetters = 8

// Brief names a volume by its driver and the first letters of its handle's sha256.
type Brief struct{ Driver, Digest string }

// Compare orders them by their drivers.
func (b Brief) Compare(other Brief) int {
	return cmp.Or(cmp.Compare(b.Driver, other.Driver), cmp.Compare(b.Digest, other.Digest))
}

// Brief returns the names of the volume, by its handle and by its path; none if it has neither.
func (v *Volume) Brief() []Brief { return briefly(v.Path, v.Driver, v.Handle) }

// Volume is one CSI volume at one staging path.
type Volume struct {
	// Driver and Handle identify the volume. Where they could not be read, the handle
	// is empty, and the driver may be. Where that is so of a pod's record, PersistentVolume
	// is the folder's name, and Path the folder.
	Driver, Handle string
	// PersistentVolume is its name in a pod's folder or a block volume's; empty without one. Of several
	// it is the alphabet's first.
	PersistentVolume string
	Mode             Mode
	// Path is where the kubelet has, or would have, the volume staged, below its folder.
	Path string
	// Staged: the kubelet has written down that it had the volume staged, or something
	// is mounted at Path. It says so before it calls the driver, and until the driver
	// has answered that nothing is left.
	Staged Answer
	// Mounted: something is mounted at or below Path. Drivers need not mount anything
	// there, least of all for Block.
	Mounted Answer
	// Published are the pods it is published to, sorted by UID.
	Published []Publication
	// MorePods: there are more than are kept.
	MorePods bool
	// FileSystems are its file systems in the kernel, sorted.
	FileSystems []FileSystem
	// MoreFileSystems: the kernel has more, or may have.
	MoreFileSystems bool
	// Forgotten: it is staged, mounted or published, and no pod's folder names it.
	Forgotten bool
	// Unknown names the unreadable parts of this volume, and why; empty: none.
	Unknown string

	named    bool // by a pod's folder
	recorded bool // by the record of a block volume
	untold   bool // an earlier process had no room for a file system
}

// Publication is one pod that has a volume.
type Publication struct {
	PodUID string
	// PodFolder: the pod's folder names the volume. If not, only the driver's own path
	// of a block volume does.
	PodFolder bool
	// Mounted: something is mounted where the volume is published to this pod.
	Mounted Answer
}
