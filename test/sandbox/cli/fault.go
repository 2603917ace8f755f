// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func newFaultCommand(s *Session) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fault",
		Short: "Break something in the running cluster, or mend it",
		Args:  knownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	for _, f := range []struct {
		action sandbox.FaultAction
		short  string
	}{
		{sandbox.ActionKill, "Kill a component or a node's processes with SIGKILL"},
		{sandbox.ActionStart, "Start a killed component or node again"},
		{sandbox.ActionPause, "Stop a component or node with SIGSTOP"},
		{sandbox.ActionResume, "Let a paused component or node go on"},
		{sandbox.ActionPowerOff, "Switch a node's machine off: what it had mounted is gone, and the disk service knows"},
		{sandbox.ActionPowerOn, "Switch a node's machine on again"},
		{sandbox.ActionCut, "Cut a component, a node or all off from the API server"},
		{sandbox.ActionRestore, "Connect a component, a node or all with the API server again"},
	} {
		cmd.AddCommand(&cobra.Command{
			Use:   string(f.action) + " NAME",
			Short: f.short,
			Args:  cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				return s.processFault(cmd, f.action, args[0])
			},
		})
	}
	cmd.AddCommand(
		newHealCommand(s),
		newDiskFaultCommand(s, "attach", diskapi.ControllerPublish),
		newDiskFaultCommand(s, "detach", diskapi.ControllerUnpublish),
		newFaultListCommand(s), newFaultClearCommand(s),
	)
	return cmd
}

func (s *Session) processFault(cmd *cobra.Command, action sandbox.FaultAction, target string) error {
	remote, err := sandbox.Find(cmd.Context(), s.dir, s.name)
	if err != nil {
		return err
	}
	if err := remote.Do(cmd.Context(), action, target); err != nil {
		return err
	}
	info, err := remote.Info(cmd.Context())
	if err != nil {
		return err
	}
	if s.json {
		return printJSON(cmd.OutOrStdout(), info)
	}
	return printProcesses(cmd.OutOrStdout(), info, target)
}

func newHealCommand(s *Session) *cobra.Command {
	return &cobra.Command{
		Use:   string(sandbox.ActionHeal),
		Short: "Start, resume and reconnect everything, and clear all faults of the disk service",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := s.disk(cmd.Context())
			if err != nil {
				return err
			}
			if err := s.processFault(cmd, sandbox.ActionHeal, ""); err != nil {
				return err
			}
			return client.ClearFaults(cmd.Context())
		},
	}
}

func newDiskFaultCommand(s *Session, name string, call diskapi.Call) *cobra.Command {
	f := disk.Fault{Calls: []diskapi.Call{call}}
	var action, node string
	var delay time.Duration
	cmd := &cobra.Command{
		Use:   name,
		Short: fmt.Sprintf("Make the next %ses of a volume or a node fail, wait or hang", name),
		Example: fmt.Sprintf("  moorage-sandbox fault %s --action fail --code ResourceExhausted --node worker-1 --times 2\n"+
			"  moorage-sandbox fault %s --action delay --delay 5s", name, name),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := s.disk(cmd.Context())
			if err != nil {
				return err
			}
			f.Action, f.DelayMs = diskapi.Action(action), delay.Milliseconds()
			if node != "" {
				if err := s.knows(cmd.Context(), node); err != nil {
					return err
				}
				f.Node = disk.NodeID(node)
			}
			if f.Action != diskapi.Fail && f.Action != diskapi.FailAfter {
				f.Code = ""
			}
			set, err := client.SetFault(cmd.Context(), f)
			if err != nil {
				return err
			}
			if s.json {
				return printJSON(cmd.OutOrStdout(), set)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "fault %s is set\n", set.ID)
			return err
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&action, "action", string(diskapi.Fail), "fail, fail-after, delay, hang, hang-after, hang-done or ignore")
	fs.StringVar(&f.Code, "code", "Internal", "gRPC code of a failure, such as ResourceExhausted")
	fs.StringVar(&f.Message, "message", "", "text of a failure")
	fs.DurationVar(&delay, "delay", 0, "how long a delayed call waits")
	fs.StringVar(&f.Volume, "volume", "", "only this volume handle")
	fs.StringVar(&node, "node", "", "only this node")
	fs.IntVar(&f.Times, "times", 1, "how many calls; 0 means all until cleared")
	fs.IntVar(&f.Skip, "skip", 0, "let that many calls pass first")
	fs.Float64Var(&f.Probability, "probability", 0, "share of the calls, in (0, 1]; 0 means all")
	fs.Uint64Var(&f.Seed, "seed", 0, "seed that decides which calls")
	return cmd
}

func newFaultListCommand(s *Session) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the disk service's faults and how often they hit",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := s.disk(cmd.Context())
			if err != nil {
				return err
			}
			faults, err := client.Faults(cmd.Context())
			if err != nil {
				return err
			}
			if s.json {
				return printJSON(cmd.OutOrStdout(), faults)
			}
			return printFaults(cmd.OutOrStdout(), faults)
		},
	}
}

func newFaultClearCommand(s *Session) *cobra.Command {
	return &cobra.Command{
		Use:   "clear [ID]",
		Short: "Clear one fault of the disk service, or all",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := s.disk(cmd.Context())
			if err != nil {
				return err
			}
			if len(args) == 1 {
				return client.ClearFault(cmd.Context(), args[0])
			}
			return client.ClearFaults(cmd.Context())
		},
	}
}

func (s *Session) knows(ctx context.Context, node string) error {
	remote, err := sandbox.Find(ctx, s.dir, s.name)
	if err != nil {
		return err
	}
	info, err := remote.Info(ctx)
	if err != nil {
		return err
	}
	return knownNode(node, info.Shape.Nodes)
}

func knownNode(node string, nodes int) error {
	for i := range nodes {
		if node == sandbox.NodeName(i+1) {
			return nil
		}
	}
	return fmt.Errorf("there is no node %q: choose %s to %s", node, sandbox.NodeName(1), sandbox.NodeName(nodes))
}

func (s *Session) disk(ctx context.Context) (disk.Client, error) {
	remote, err := sandbox.Find(ctx, s.dir, s.name)
	if err != nil {
		return disk.Client{}, err
	}
	info, err := remote.Info(ctx)
	if err != nil {
		return disk.Client{}, err
	}
	return disk.Client{BaseURL: info.DiskURL}, nil
}
