// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package node

import (
	"context"
	"errors"
)

// watchMounts needs Linux.
func watchMounts(context.Context, string, chan struct{}) error {
	return errors.New("moorage-node runs on Linux only")
}
