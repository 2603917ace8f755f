// SPDX-License-Identifier: Apache-2.0

// Package commands reads the commands of the documentation out of its Markdown,
// so that a test can run each of them, and tell those that it does not know how
// to run. It does no I/O.
//
// How a page says what becomes of its commands:
//
//	```sh run=STEP          each command of the fence is run in step STEP of the story
//	```console run=STEP     lines that begin with "$ " are run; those below are what they print,
//	                        in which … stands for anything
//	```sh by-hand           no test runs them: what they need is listed in docs/internals/scenarios.md
//	```console session      the capture is one of internal/kubectl's sessions
//	<!-- run=STEP -->       at the end of a line: so are the kubectl and helm commands in its `code`
//	<!-- by-hand -->        the same
//
// A command that is word for word one of those needs no mark of its own.
package commands
