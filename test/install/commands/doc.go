// SPDX-License-Identifier: Apache-2.0

// Package commands reads the commands of the documentation out of its Markdown. A test can then run
// each command, and report commands that it can't run. It does no I/O.
//
// A page marks its commands:
//
//	```sh run=STEP          each command of the fence is run in step STEP of the story
//	```console run=STEP     lines that begin with "$ " are run; those below are what they print,
//	                        in which … stands for anything
//	```sh by-hand           no test runs them: what they need is listed in docs/internals/scenarios.md
//	```console session      the capture is one of internal/kubectl's sessions
//	<!-- run=STEP -->       at the end of a line: so are the kubectl and helm commands in its `code`
//	<!-- by-hand -->        the same
//
// A command that equals a marked command needs no mark.
package commands
