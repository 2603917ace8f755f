// SPDX-License-Identifier: Apache-2.0

// Command moorage-webhook serves Moorage's admission webhook, or, as
// "moorage-webhook extender", its scheduler extender: another process with a
// listener, a service account and client certificates of its own, since the
// webhook needs no rights at all. As "moorage-webhook certificate" it makes the
// webhook's certificate, and as "moorage-webhook check" it looks whether an installed
// Moorage works; both end.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/moorage-dev/moorage/plugins/extender"
	"github.com/moorage-dev/moorage/webhook"
	"github.com/moorage-dev/moorage/webhook/certificate"
	"github.com/moorage-dev/moorage/webhook/check"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	command := webhook.NewCommand()
	command.AddCommand(extender.NewCommand(), certificate.NewCommand(), check.NewCommand())
	if err := command.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "moorage-webhook:", err)
		stop()
		os.Exit(1)
	}
}
