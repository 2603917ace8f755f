// SPDX-License-Identifier: Apache-2.0

// Package access asks the API server about users and rights, by TokenReviews and SubjectAccessReviews, and
// keeps answers for a short time. Without an answer, no client is let in, and nothing is remembered.
package access
