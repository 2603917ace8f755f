// SPDX-License-Identifier: Apache-2.0

// Package controller is moorage-controller: it detaches and attaches volumes, publishes which volumes may
// be mounted, and ends tickets. It composes its stages; internal/rules decides.
//
// Only the leader writes. A lease does not stop a paused process: every write has a deadline inside the
// lease, and a new leader waits for its predecessor's last write.
package controller
