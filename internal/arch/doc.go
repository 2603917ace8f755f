// SPDX-License-Identifier: Apache-2.0

// Package arch has only tests of the whole module: the import law (CONTRIBUTING.md, "Where things are"),
// the core's purity, logs and pages, and whether the core's tests would notice a missing rule.
package arch
