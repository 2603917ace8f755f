// SPDX-License-Identifier: Apache-2.0

// Package wire reads schedulers' requests to an extender, and writes the answers, in bounded memory. The
// types are those of k8s.io/kube-scheduler/extender/v1, except for nodes: only names matter, and whole
// nodes go back byte for byte.
package wire
