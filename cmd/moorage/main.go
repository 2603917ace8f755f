// SPDX-License-Identifier: Apache-2.0

// Command moorage has the roles of Moorage in a cluster, each a process with an account of its own:
//
//	moorage scheduler    places pods: kube-scheduler with the plugin VolumeHold; it may answer schedulers
//	                     that can't load the plugin
//	moorage controller   attaches, detaches and reports
//	moorage webhook      stamps pods as they are created
//
// moorage certificate makes the webhook's certificate, and moorage check tests an installation; both
// end by themselves.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // request metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // version metric
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/controller"
	"github.com/moorage-dev/moorage/internal/memory"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/plugins/scheduler"
	"github.com/moorage-dev/moorage/webhook"
	"github.com/moorage-dev/moorage/webhook/certificate"
	"github.com/moorage-dev/moorage/webhook/check"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	memory.KeepWithinLimit(klog.Background())
	// Without this, kube-scheduler's own hook would replace the hook that begins logging.
	cobra.EnableTraverseRunHooks = true
	root := &cobra.Command{
		Use:          "moorage",
		Short:        "Attach-aware scheduling and volume attachment",
		Version:      report.Version,
		SilenceUsage: true,
	}
	root.SetContext(ctx)
	root.AddCommand(scheduler.NewCommand(), controller.NewCommand(), webhook.NewCommand(),
		certificate.NewCommand(), check.NewCommand())
	err := cli.RunNoErrOutput(root)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "moorage:", err)
		os.Exit(1)
	}
}
