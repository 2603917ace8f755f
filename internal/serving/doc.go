// SPDX-License-Identifier: Apache-2.0

// Package serving is what Moorage's HTTPS servers, webhook and extender, have in
// common: certificates that follow their files, limits of connections, an
// orderly end, and errors in the API's own form.
//
// Reads: the files of certificates; requests. Decides: nothing. Writes: answers.
package serving
