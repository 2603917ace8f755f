// SPDX-License-Identifier: Apache-2.0

// Package connect makes the clients of Moorage's processes for the API server, from a kubeconfig or a
// service account.
package connect
