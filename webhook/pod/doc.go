// SPDX-License-Identifier: Apache-2.0

// Package pod decides the webhook's changes to a new pod of a namespace that opted in: its
// scheduler, and the placeholder of its volume status. It is pure: a pod in, JSON Patch operations
// out.
package pod
