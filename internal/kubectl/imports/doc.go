// SPDX-License-Identifier: Apache-2.0

// Package imports is kubectl moorage import: it makes VolumeTickets for what has volumes at nodes before
// Moorage attaches and detaches there.
//
// Reads: the cluster, and Longhorn's VolumeAttachments. Decides: nothing; package facts says which tickets
// there are to be. Writes: VolumeTickets, with --apply.
package imports
