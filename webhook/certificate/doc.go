// SPDX-License-Identifier: Apache-2.0

// Package certificate makes and renews the webhook's serving certificate where cert-manager doesn't. Each
// certificate has its own authority, whose key is forgotten after the signature. The API server first
// trusts the new authority beside the earlier valid ones. Only then is the certificate shown: no request is
// dropped.
package certificate
