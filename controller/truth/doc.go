// SPDX-License-Identifier: Apache-2.0

// Package truth compares API objects with each other: volumesAttached, VolumeAttachments, VolumeHolds,
// VolumeTickets and pods' annotations. A difference shows a fault, or another controller at work. It
// reports differences, and hands them to their stages for repair.
package truth
