// SPDX-License-Identifier: Apache-2.0

// Package operation decides which tickets Moorage makes for drivers' snapshots, clones and expansions, if
// an AttachPolicy says that the volume has to be attached or detached for that (attachFor, detachFor). It
// decides on all present objects together and is pure: package controller/operation talks to the servers.
package operation
