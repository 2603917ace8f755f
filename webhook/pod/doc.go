// SPDX-License-Identifier: Apache-2.0

// Package pod decides the webhook's changes to a new pod: its scheduler, and the placeholder of its volume
// status. It is pure.
package pod
