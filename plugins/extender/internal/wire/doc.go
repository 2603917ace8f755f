// SPDX-License-Identifier: Apache-2.0

// Package wire reads requests of schedulers to an extender, and writes the answers, in bounded
// memory for any sender. The types are those of k8s.io/kube-scheduler/extender/v1, except for
// nodes: only their names matter, and a scheduler that sends whole nodes gets them back byte for
// byte.
package wire
