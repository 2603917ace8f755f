// SPDX-License-Identifier: Apache-2.0

// Command moorage-webhook serves Moorage's admission webhook.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/moorage-dev/moorage/webhook"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := webhook.NewCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "moorage-webhook:", err)
		stop()
		os.Exit(1)
	}
}
