// SPDX-License-Identifier: Apache-2.0

// Command moorage-sandbox runs a real Kubernetes cluster on this machine, and
// Moorage in it, against a simulated disk service that judges.
package main

import (
	"maps"
	"os"

	"github.com/spf13/cobra"

	"github.com/moorage-dev/moorage/controller"
	"github.com/moorage-dev/moorage/controller/attacher"
	"github.com/moorage-dev/moorage/manifests"
	"github.com/moorage-dev/moorage/plugins/extender"
	"github.com/moorage-dev/moorage/plugins/scheduler"
	"github.com/moorage-dev/moorage/test/bench"
	"github.com/moorage-dev/moorage/test/bench/attach"
	"github.com/moorage-dev/moorage/test/bench/chaos"
	"github.com/moorage-dev/moorage/test/e2e"
	"github.com/moorage-dev/moorage/test/sandbox/cli"
	"github.com/moorage-dev/moorage/test/sandbox/disk"
	"github.com/moorage-dev/moorage/test/sandbox/upstream"
	"github.com/moorage-dev/moorage/webhook"
)

func main() {
	os.Exit(cli.Main(cli.Config{
		Components: components(),
		Manifests:  manifests.FS,
		Scenarios:  e2e.Scenarios(),
		Demo:       e2e.Demo(),
		Commands:   []func(*cli.Session) *cobra.Command{benchmark, benchmarkAttachers, benchmarkChaos},
	}))
}

func benchmark(s *cli.Session) *cobra.Command { return bench.NewCommand(s) }

func benchmarkAttachers(s *cli.Session) *cobra.Command { return attach.NewCommand(s) }

func benchmarkChaos(s *cli.Session) *cobra.Command { return chaos.NewCommand(s, e2e.Chaos()) }

// components are the processes that this binary can become.
func components() map[string]func() *cobra.Command {
	all := upstream.Commands()
	maps.Copy(all, map[string]func() *cobra.Command{
		"disk-service":       disk.NewServiceCommand,
		"moorage-attacher":   attacher.NewCommand,
		"moorage-controller": controller.NewCommand,
		"moorage-extender":   extender.NewCommand,
		"moorage-node":       newNode,
		"moorage-scheduler":  scheduler.NewCommand,
		"moorage-webhook":    webhook.NewCommand,
	})
	return all
}
