// SPDX-License-Identifier: Apache-2.0

// Package webhook is the HTTPS server that the API server asks when a pod is created in a namespace that
// opted in. It answers with webhook/pod's JSON Patch. It fails open: if it is down or does not understand,
// the pod is admitted unchanged.
package webhook
