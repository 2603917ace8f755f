// SPDX-License-Identifier: Apache-2.0

// Package attachment carries volumes to where they are wanted and away from
// where they are not: it detaches before it attaches, one operation at a time
// for each volume, or, where many nodes may share it, for each volume and node.
//
// Reads: snapshots. Decides: rules.Plan. Writes: what the plan says, through
// package write.
package attachment
