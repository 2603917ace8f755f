// SPDX-License-Identifier: Apache-2.0

// Command moorage-controller grants, attaches and detaches volumes.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/moorage-dev/moorage/controller"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := controller.NewCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "moorage-controller:", err)
		stop()
		os.Exit(1)
	}
}
