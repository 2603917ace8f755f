// SPDX-License-Identifier: Apache-2.0

// Command moorage-node publishes its node's staged, published and mounted volumes.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/moorage-dev/moorage/controller/node"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := node.NewCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "moorage-node:", err)
		stop()
		os.Exit(1)
	}
}
