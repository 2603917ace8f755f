// SPDX-License-Identifier: Apache-2.0

// Package words puts verdicts into kube-scheduler's words, for the plugin and the extender. It is pure.
package words
