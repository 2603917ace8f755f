// SPDX-License-Identifier: Apache-2.0

package ledger

// SELinux is the label with which a kubelet mounts a volume for a pod, as far as the pod's spec
// decides on it. The zero value stands for a mount without a label: the pod names none, or has
// seLinuxChangePolicy Recursive.
//
// User and level are the parts of a process's label that the label of its files takes over
// (github.com/opencontainers/selinux, InitLabels). A user that is not named is the node's.
type SELinux struct {
	User, Level string
	// Unknown: the pod's containers that mount the volume name different labels, or one names
	// a label without a level, which the node chooses then.
	Unknown bool
}

// Conflicts says whether a kubelet refuses to mount one volume for both: for the second pod while
// it has it for the first. Where that depends on the node's own defaults it is false.
func (a SELinux) Conflicts(b SELinux) bool {
	if a.Unknown || b.Unknown {
		return false
	}
	return a.Level != b.Level || a.User != "" && b.User != "" && a.User != b.User
}
