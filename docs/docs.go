// SPDX-License-Identifier: Apache-2.0

// Package docs holds the pages that programs quote, so that a page and a program can't differ.
package docs

import _ "embed"

// Reasons is the page of every reason code: meaning, what changes it, what to
// do.
//
//go:embed reasons.md
var Reasons string

// Kubectl is the page of kubectl moorage, with the ClusterRole for reading.
//
//go:embed kubectl.md
var Kubectl string
