// SPDX-License-Identifier: Apache-2.0

// Package web holds the browser tests of kubectl moorage web: a real Chromium opens the
// page of the real command, which reads an API server that the test plays. It is a module
// of its own, so that what drives browsers does not move the versions of everything else.
//
//	make test-web
package web
