// SPDX-License-Identifier: Apache-2.0

// Package check is run by helm test: it checks whether each component of an installed Moorage that elects a
// leader has one, and the webhook stamps a pod with a volume. It writes nothing.
package check
