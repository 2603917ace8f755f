// SPDX-License-Identifier: Apache-2.0

// Package access finds out from the API server who sends a request and what they may do, by
// TokenReviews and SubjectAccessReviews, and keeps its answers for a short time.
//
// It reads the request, decides nothing itself and writes nothing but the two reviews. Where
// the API server does not answer, nobody is let in, and nothing is remembered.
package access
