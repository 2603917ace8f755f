// SPDX-License-Identifier: Apache-2.0

// Package tickets decides on VolumeTickets: grants, nodes, requests to let go, and losses of grants. It
// runs in the process that places pods, under the same lock (Config.Order), so that nothing is promised
// twice. plugins/volumehold runs the Keeper; plugins/internal/binding notes waiting pods; controller/ticket
// uses its conditions.
package tickets
