// SPDX-License-Identifier: Apache-2.0

// Command moorage-attacher is a CSI sidecar that attaches and detaches volumes.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/moorage-dev/moorage/controller/attacher"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := attacher.NewCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "moorage-attacher:", err)
		stop()
		os.Exit(1)
	}
}
