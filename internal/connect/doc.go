// SPDX-License-Identifier: Apache-2.0

// Package connect makes the clients that Moorage's processes reach the API
// server by. It reads a kubeconfig or the service account's files, decides
// nothing, and writes nothing.
package connect
