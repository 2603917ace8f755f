// SPDX-License-Identifier: Apache-2.0

// Command install tells the story of Moorage's chart on a real cluster: it is
// installed, used, upgraded and taken out again, with helm's own commands, and
// with cert-manager's own controllers. The sandbox's kubelets run no containers,
// so that package pods runs them as processes, under the chart's service
// accounts, and leads Services to them.
//
// Reads: the chart, the cluster, its audit log. Decides: whether the story went
// as it should. Writes: what an administrator and a tenant would write.
package main
