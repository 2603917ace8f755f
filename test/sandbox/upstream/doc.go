// SPDX-License-Identifier: Apache-2.0

// Package upstream holds the parts of a sandbox cluster that are Kubernetes
// itself, as commands: embedded etcd, kube-apiserver, kube-controller-manager,
// kube-scheduler and a node.
//
// Each command is one process of its own, started by the multi-call binary:
// the kubelet's CSI plugin keeps its drivers in a process-wide store, and every
// component can be killed with SIGKILL alone. The commands read their flags;
// Kubernetes decides; what they write, they write to the API server.
//
// A node is a real kubelet (volume manager, CSI plugin, plugin registration,
// node status) with a fake container runtime: pods become Running when their
// volumes are mounted and their "containers" have started, and nothing is
// executed. The node process also serves the CSI node plugin of the simulated
// disk service.
package upstream
