// SPDX-License-Identifier: Apache-2.0

// Package arch holds no code but tests, of the module as a whole: of the import
// law (CONTRIBUTING.md, "Where things are"), of the purity of the core, of what
// logs and pages say, and of whether the core's tests would notice a rule that
// is gone.
package arch
