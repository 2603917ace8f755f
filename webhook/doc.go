// SPDX-License-Identifier: Apache-2.0

// Package webhook is the HTTPS server that the API server asks when a pod is created in a namespace
// that opted in. It fails open: if it is down or does not understand, the pod is admitted
// unchanged, and the default scheduler places it.
//
// Reads: AdmissionReviews of the API server, and its certificate's files. Decides: webhook/pod.
// Writes: nothing; it answers with a JSON Patch. It asks the API server only about the clients that read
// its metrics over HTTPS.
package webhook
