// SPDX-License-Identifier: Apache-2.0

// Package audit reads the API server's audit log: who wrote what, and which calls were denied.
package audit
