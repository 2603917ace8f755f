// SPDX-License-Identifier: Apache-2.0

// Package doctor is kubectl moorage doctor: whether Moorage and what it stands
// on are set up as they should be.
//
// Reads: everything the ledger is made of; what the API server serves; CRDs,
// webhook configurations, admission policies and their bindings, roles, Leases,
// EndpointSlices, the scheduler's ConfigMap, cert-manager's Certificates and the
// chart's CronJobs and DaemonSets, with their events; the kubelets' configz.
// Decides: checks.go lists the checks, each a pure function of the Evidence.
// Writes: nothing; with --probe it creates a pod as a dry run, which the API
// server does not keep, to have the webhook called.
//
// What may not be read is a finding of its own, and never makes a check pass.
package doctor
