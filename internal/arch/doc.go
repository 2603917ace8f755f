// SPDX-License-Identifier: Apache-2.0

// Package arch holds no code but tests: of the import law of DESIGN.md section
// 5, and of the purity of the core.
package arch
