// SPDX-License-Identifier: Apache-2.0

// Package access asks the API server about a request's user and rights, by TokenReviews and
// SubjectAccessReviews, and keeps its answers for a short time.
//
// It reads the request, decides nothing itself and writes nothing but the two reviews. If the API
// server does not answer, no client is let in, and nothing is remembered.
package access
