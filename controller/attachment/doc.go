// SPDX-License-Identifier: Apache-2.0

// Package attachment detaches volumes from unwanted nodes and attaches them at wanted nodes: one operation
// at a time for each volume, or for each volume and node if the volume is shared. rules.Plan decides;
// package write writes.
package attachment
