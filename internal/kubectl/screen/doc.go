// SPDX-License-Identifier: Apache-2.0

// Package screen prints facts: as tables with cli-runtime's printers, as
// screens for people, and as JSON, YAML or by a template for programs. It
// computes nothing.
package screen
