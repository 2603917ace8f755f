// SPDX-License-Identifier: Apache-2.0

// Package arch has only tests, of the module as a whole: the import law (CONTRIBUTING.md, "Where things
// are"), the purity of the core, the content of logs and pages, and whether the core's tests would
// notice a missing rule.
package arch
