// SPDX-License-Identifier: Apache-2.0

// Package certificate makes and renews the webhook's serving certificate where cert-manager
// doesn't. Each certificate has an authority of its own, and the authority's key is forgotten once
// it has signed. The API server first trusts the new authority beside the earlier ones that are
// still valid. Only then is the certificate shown: no request is dropped on the way.
//
// Reads: the Secret with the certificate, the webhook's configuration. Decides: whether it is time.
// Writes: the Secret, and the CA bundle in the configuration.
package certificate
