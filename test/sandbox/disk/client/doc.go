// SPDX-License-Identifier: Apache-2.0

// Package client talks to the disk service's admin API: for node plugins, for
// scenarios that set faults and wait for calls, and for people's commands.
//
// It reads and writes the API documented in package service and decides nothing.
package client
