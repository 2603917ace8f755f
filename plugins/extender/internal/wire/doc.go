// SPDX-License-Identifier: Apache-2.0

// Package wire reads what schedulers send to an extender, and writes what they
// take, in bounded memory however hostile the sender is. The types are those of
// k8s.io/kube-scheduler/extender/v1, but for nodes: of those only the names
// matter, and a scheduler that sends whole nodes gets them back byte for byte.
package wire
