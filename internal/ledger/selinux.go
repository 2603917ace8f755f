// SPDX-License-Identifier: Apache-2.0

package ledger

import "strings"

// SELinux is the part of a kubelet's mount label for a pod that the pod's spec decides: user and level,
// which a file's label takes from the process's (github.com/opencontainers/selinux, InitLabels).
// Comparable; two words for each pod's volume, as large clusters have many.
type SELinux string

const (
	// SELinuxNone: the volume is mounted without a label, since the pod names none or has
	// seLinuxChangePolicy Recursive.
	SELinuxNone SELinux = ""
	// SELinuxUnknown: the pod's containers with the volume name different labels, or one without a level,
	// which the node then chooses; or no container mounts it.
	SELinuxUnknown SELinux = "?"
)

// SELinuxLabel is a label with a level. An empty user means the node's.
func SELinuxLabel(user, level string) SELinux { return SELinux(user + ":" + level) }

// Parts are the user and the level of a label; empty without a label.
func (a SELinux) Parts() (user, level string) {
	user, level, _ = strings.Cut(string(a), ":")
	if a == SELinuxUnknown {
		user = ""
	}
	return user, level
}

// Conflicts says whether a kubelet refuses to mount one volume for both: for the second pod while it has it
// for the first. It is false if that depends on the node's own defaults.
func (a SELinux) Conflicts(b SELinux) bool {
	if a == b || a == SELinuxUnknown || b == SELinuxUnknown {
		return false
	}
	userA, levelA := a.Parts()
	userB, levelB := b.Parts()
	return levelA != levelB || userA != "" && userB != "" && userA != userB
}
