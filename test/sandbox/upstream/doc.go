// SPDX-License-Identifier: Apache-2.0

// Package upstream has Kubernetes' parts of a sandbox cluster as commands, each with its own process, since
// the kubelet's CSI plugin has a process-wide store. A node is a real kubelet with a fake container
// runtime, which executes nothing, and a CSI node plugin.
package upstream
