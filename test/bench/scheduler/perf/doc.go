// SPDX-License-Identifier: Apache-2.0

// Command perf runs one workload of kube-scheduler's own benchmark
// (k8s.io/kubernetes/test/integration/scheduler_perf) with kube-scheduler's own profile or with
// Moorage's, in a process of its own, and stores the measurements.
//
//	reads    scheduler_perf's result, the metrics of kube-scheduler and of
//	         kube-apiserver, which are in this process, and a watch on the
//	         measured pods
//	decides  nothing: it makes load, and counts
//	writes   nodes, volumes, claims and pods; the result of the run
//
// With Moorage's profile the CRDs are there, and the plugin VolumeHold takes the place of
// NodeVolumeLimits and DefaultBinder. Moorage's controller does not run, and with neither profile
// an attach/detach controller.
package main
