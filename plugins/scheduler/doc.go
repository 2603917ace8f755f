// SPDX-License-Identifier: Apache-2.0

// Package scheduler is kube-scheduler with the plugin VolumeHold built in: the
// one package of Moorage's own that imports k8s.io/kubernetes for it. It answers other schedulers,
// too, if it is told where to listen (plugins/extender).
//
// Reads, decides and writes what kube-scheduler does, and what package
// volumehold adds. Profiles without the plugin are kube-scheduler's own.
package scheduler
