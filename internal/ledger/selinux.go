// SPDX-License-Identifier: Apache-2.0

package ledger

import "strings"

// SELinux is the pod's part of a mount label: user and level. A file's label takes these from the process
// (github.com/opencontainers/selinux, InitLabels). Comparable, and small.
type SELinux string

const (
	// SELinuxNone: no mount label, since the pod names none or has seLinuxChangePolicy Recursive.
	SELinuxNone SELinux = ""
	// SELinuxUnknown: containers' labels differ, or lack a level that the node chooses, or no container
	// mounts the volume.
	SELinuxUnknown SELinux = "?"
)

// SELinuxLabel is a label with a level; an empty user is the node's.
func SELinuxLabel(user, level string) SELinux { return SELinux(user + ":" + level) }

// Parts are the user and the level, or empty.
func (a SELinux) Parts() (user, level string) {
	user, level, _ = strings.Cut(string(a), ":")
	if a == SELinuxUnknown {
		user = ""
	}
	return user, level
}

// Conflicts says whether a kubelet refuses one volume for both at once. False if the node's defaults
// decide.
func (a SELinux) Conflicts(b SELinux) bool {
	if a == b || a == SELinuxUnknown || b == SELinuxUnknown {
		return false
	}
	userA, levelA := a.Parts()
	userB, levelB := b.Parts()
	return levelA != levelB || userA != "" && userB != "" && userA != userB
}
