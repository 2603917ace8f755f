// SPDX-License-Identifier: Apache-2.0

// Command certmanager runs cert-manager's own controllers: they issue and renew certificates from
// self-signed and CA issuers, and inject CA bundles. cert-manager's module has no commands, and the sandbox
// can run no container.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: certmanager CONTROLLER-KUBECONFIG CAINJECTOR-KUBECONFIG")
	}
	ctrl.SetLogger(klog.Background())
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return issue(ctx, args[0]) })
	group.Go(func() error { return inject(ctx, args[1]) })
	return group.Wait()
}
