// SPDX-License-Identifier: Apache-2.0

// Package client talks to the disk service's admin API, for node plugins, scenarios and commands.
package client
