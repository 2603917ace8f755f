// SPDX-License-Identifier: Apache-2.0

package report

// Version is the built version; only the linker sets it (see the Makefile).
var Version = "unknown"
