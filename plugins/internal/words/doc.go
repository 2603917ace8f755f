// SPDX-License-Identifier: Apache-2.0

// Package words says the arbiter's verdicts as kube-scheduler says why a pod has no node, for the
// plugin and the extender alike. It is pure.
package words
