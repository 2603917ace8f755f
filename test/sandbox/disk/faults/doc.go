// SPDX-License-Identifier: Apache-2.0

// Package faults decides which call a fault hits. It is pure: the same faults and calls in the same order
// give the same hits, so that a restarted service can replay its log.
package faults
