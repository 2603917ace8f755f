// SPDX-License-Identifier: Apache-2.0

// Package scheduler is kube-scheduler with the plugin VolumeHold: the only package of Moorage that imports
// k8s.io/kubernetes for it. It also answers other schedulers, if it has an address to listen at
// (plugins/extender). Profiles without the plugin are kube-scheduler's own.
package scheduler
