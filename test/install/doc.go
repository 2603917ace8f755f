// SPDX-License-Identifier: Apache-2.0

// Command install tells the story of Moorage's chart on a real cluster, with helm's own commands and
// cert-manager's own controllers. The sandbox's kubelets run no containers: package pods runs them as
// processes, under the chart's service accounts, and leads Services to them.
package main
