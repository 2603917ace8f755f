// SPDX-License-Identifier: Apache-2.0

package report

// Version is what was built: the linker sets it (see the Makefile), and
// nothing else does.
var Version = "unknown"
