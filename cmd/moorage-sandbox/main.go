// SPDX-License-Identifier: Apache-2.0

// Command moorage-sandbox runs a real Kubernetes cluster with Moorage on this machine, against a simulated
// disk service.
package main

import (
	"maps"
	"os"

	"github.com/spf13/cobra"

	"github.com/moorage-dev/moorage/controller"
	"github.com/moorage-dev/moorage/controller/attacher"
	"github.com/moorage-dev/moorage/manifests"
	"github.com/moorage-dev/moorage/plugins/scheduler"
	"github.com/moorage-dev/moorage/test/bench"
	"github.com/moorage-dev/moorage/test/bench/attach"
	"github.com/moorage-dev/moorage/test/bench/chaos"
	"github.com/moorage-dev/moorage/test/bench/node"
	"github.com/moorage-dev/moorage/test/bench/scale"
	"github.com/moorage-dev/moorage/test/e2e"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/cli"
	"github.com/moorage-dev/moorage/test/sandbox/csiaddons"
	"github.com/moorage-dev/moorage/test/sandbox/disk"
	"github.com/moorage-dev/moorage/test/sandbox/real/machine"
	"github.com/moorage-dev/moorage/test/sandbox/upstream"
	"github.com/moorage-dev/moorage/webhook"
)

func main() {
	os.Exit(cli.Main(cli.Config{
		Components: components(),
		Manifests:  manifests.FS,
		Scenarios:  e2e.Scenarios(),
		Demo:       e2e.Demo(),
		Commands:   commands(),
	}))
}

func commands() []func(*cli.Session) *cobra.Command {
	list := []func(*cli.Session) *cobra.Command{benchmark, benchmarkAttachers, benchmarkNode, benchmarkScale}
	for _, subject := range counted {
		list = append(list, func(s *cli.Session) *cobra.Command { return chaos.NewCommand(s, subject) })
	}
	return list
}

func benchmark(s *cli.Session) *cobra.Command { return bench.NewCommand(s) }

func benchmarkAttachers(s *cli.Session) *cobra.Command { return attach.NewCommand(s) }

func benchmarkNode(s *cli.Session) *cobra.Command { return node.NewCommand(s) }

func benchmarkScale(s *cli.Session) *cobra.Command { return scale.NewCommand(s) }

var counted = []chaos.Subject{
	{
		Command: "bench-chaos", Short: "Put a mode through ten minutes of chaos and keep what came of it",
		Long: "Runs the scenario chaos in one mode, see docs/internals/chaos.md: between 11 and 20 minutes. In\n" +
			"Standalone mode it passes or fails. In other modes kube-controller-manager attaches and detaches,\n" +
			"and what goes wrong is counted; a pod that never runs fails Cooperative mode.",
		Results:  "test/bench/results/chaos.json",
		Scenario: func(int) sandbox.Scenario { return e2e.Chaos() }, Disks: true,
	},
	{
		Command: "bench-kubelet-kills", Short: "Kill kubelets at every step of mounting, and count what came of it",
		Long: "Runs the scenario kubelet-kills in one mode, see docs/internals/kubelet-staging-hole.md. With\n" +
			"moorage-node it passes or fails; otherwise the volumes that are detached while they are staged\n" +
			"are counted.",
		Results:  "test/bench/results/kubelet-kills.json",
		Scenario: e2e.KubeletKills, Repeat: 76, RepeatFlag: "kills", RepeatHelp: "how many kubelets are killed", Node: true,
	},
	{
		Command: "bench-drain", Short: "Drain a node with thirty workloads, and measure how long each is away",
		Long: "Runs the scenario drain-many in one mode, see docs/internals/drain.md: with Moorage by kubectl moorage\n" +
			"drain, in upstream's mode by the code of kubectl drain.",
		Results:  "test/bench/results/drain.json",
		Scenario: func(int) sandbox.Scenario { return e2e.DrainMany() },
	},
	{
		Command: "bench-power-off", Short: "Switch machines off, and measure how long until their pods run elsewhere",
		Long:     "Runs the scenario power-off-times in one mode: some 25 minutes with Moorage, 5 in upstream's mode.",
		Results:  "test/bench/results/power-off.json",
		Scenario: func(int) sandbox.Scenario { return e2e.PowerOffTimes() },
	},
	{
		Command: "bench-waits", Short: "Reboot machines, restart kubelets and replace Nodes, and measure how long their pods are away",
		Long:     "Runs the scenario wait-times in one mode: some 15 minutes.",
		Results:  "test/bench/results/waits.json",
		Scenario: func(int) sandbox.Scenario { return e2e.WaitTimes() },
	},
	{
		Command: "bench-leader-gaps", Short: "Kill and end leaders, and measure how long nothing is bound and nothing is attached",
		Long:     "Runs the scenario leader-gaps, see docs/internals/leader-gaps.md: some 25 minutes.",
		Results:  "test/bench/results/leader-gaps.json",
		Scenario: func(int) sandbox.Scenario { return e2e.LeaderGaps() },
	},
	{
		Command: "bench-data", Short: "Play faults while a database writes, and count the records that it loses; as root, after make real",
		Long: "Runs the scenario real-data in one mode: PostgreSQL on real nodes with real disks, and a client that keeps\n" +
			"each acknowledgement. Some minutes for each repetition.",
		Results:  "test/bench/results/data.json",
		Scenario: e2e.RealData, Repeat: 10, RepeatFlag: "repeat", RepeatHelp: "how often each fault is played", Disks: true,
	},
	{
		Command: "bench-data-cuts", Short: "Cut nodes off while databases write, and count the records that they lose; as root, after make real",
		Long: "Runs the scenario real-cuts in one mode: five databases on a node that is cut off from the API server and\n" +
			"goes on writing. For each repetition ten minutes, twenty with Moorage alone.",
		Results:  "test/bench/results/data-cuts.json",
		Scenario: e2e.RealCuts, Repeat: 2, RepeatFlag: "repeat", RepeatHelp: "how often each row is played, with five databases", Disks: true,
	},
	{
		Command: "bench-data-kills", Short: "Kill components while ten databases write, and count the records that they lose; as root, after make real",
		Long: "Runs the scenario real-kills in one mode: for twenty minutes, components are killed and pods are deleted\n" +
			"at random.",
		Results:  "test/bench/results/data-kills.json",
		Scenario: func(int) sandbox.Scenario { return e2e.RealKills() }, Disks: true,
	},
	{
		Command: "bench-storage-suites", Short: "Run Kubernetes' own storage suites on real nodes, and count what passes; as root, after make real",
		Long: "Runs the scenario storage-suites-real in one mode: for about an hour. The environment variable FOCUS\n" +
			"selects other specs, by a regular expression.",
		Results:  "test/bench/results/storage-suites.json",
		Scenario: func(int) sandbox.Scenario { return e2e.RealStorageSuites() },
	},
	{
		Command: "bench-storage-topology", Short: "Run Kubernetes' own specs of volumes' topology on real nodes in two zones, and count what passes; as root, after make real",
		Long: "Runs the scenario storage-topology-real in one mode: for some minutes. The environment variable FOCUS\n" +
			"selects other specs, by a regular expression.",
		Results:  "test/bench/results/storage-topology.json",
		Scenario: func(int) sandbox.Scenario { return e2e.RealStorageTopology() },
	},
}

// components are the processes that this binary can become.
func components() map[string]func() *cobra.Command {
	all := upstream.Commands()
	maps.Copy(all, map[string]func() *cobra.Command{
		"csi-addons":         csiaddons.NewCommand,
		"disk-service":       disk.NewServiceCommand,
		"inside":             machine.NewInsideCommand,
		"machine":            machine.NewCommand,
		"moorage-attacher":   attacher.NewCommand,
		"moorage-controller": controller.NewCommand,
		"moorage-node":       newNode,
		"moorage-scheduler":  scheduler.NewCommand,
		"moorage-webhook":    webhook.NewCommand,
	})
	return all
}
