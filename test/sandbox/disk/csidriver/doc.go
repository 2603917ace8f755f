// SPDX-License-Identifier: Apache-2.0

// Package csidriver speaks the CSI Identity and Controller services for the disk
// service, as the controller part of a driver does.
//
// It reads gRPC requests, checks their form, and hands them to a Backend, which
// decides and logs; it writes nothing but the answer.
package csidriver
