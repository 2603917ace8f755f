// SPDX-License-Identifier: Apache-2.0

// Package serving has the common parts of Moorage's HTTPS servers, webhook and extender: certificates that
// follow their files, limits, an orderly end, and errors in the API's form. It decides nothing.
package serving
