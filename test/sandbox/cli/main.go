// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	basecli "k8s.io/component-base/cli"

	"github.com/moorage-dev/moorage/test/sandbox"
)

type Config struct {
	// Components are the multi-call binary's commands by name. A command is built only in the process that
	// runs it.
	Components map[string]func() *cobra.Command
	Manifests  fs.FS
	Scenarios  []sandbox.Scenario
	Demo       []sandbox.Scene
	Commands   []func(*Session) *cobra.Command
}

// Main returns the exit code: 0 only when everything was done, each expectation held, and no violation was
// seen.
func Main(config Config) int {
	if len(os.Args) > 2 && os.Args[1] == sandbox.ComponentCommand {
		return runComponent(config, os.Args[2], os.Args[3:])
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRootCommand(config)
	err := root.ExecuteContext(ctx)
	var said *reported
	switch {
	case err == nil:
		return 0
	case errors.As(err, &said):
		return said.code
	}
	fmt.Fprintln(os.Stderr, "Error:", err)
	return 1
}

// ErrReported ends a command that has reported its error: the exit code is 1, without more output.
var ErrReported error = &reported{code: 1}

type reported struct{ code int }

func (r *reported) Error() string { return fmt.Sprintf("exit code %d", r.code) }

func runComponent(config Config, name string, args []string) int {
	build, ok := config.Components[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "Error: no component %q: there are %v\n", name, slices.Sorted(maps.Keys(config.Components)))
		return 1
	}
	command := build()
	command.SetArgs(args)
	if strings.HasPrefix(name, "moorage-") { // Kubernetes' components do it themselves
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		command.SetContext(ctx)
	}
	return basecli.Run(command)
}

type Session struct {
	Config
	dir  string
	name string
	json bool
}

func (s *Session) JSON() bool { return s.json }

func (s *Session) Options() sandbox.Options {
	return sandbox.Options{
		Shape: sandbox.DefaultShape(), Name: s.name, BaseDir: s.dir,
		Manifests: s.Manifests, Components: slices.Collect(maps.Keys(s.Components)),
		Progress: func(line string) { fmt.Fprintln(os.Stderr, line) },
	}
}

func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	message := fmt.Sprintf("unknown command %q for %s", args[0], cmd.CommandPath())
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return fmt.Errorf("%s. Did you mean %q?", message, near[0])
	}
	return fmt.Errorf("%s (--help lists them)", message)
}

func newRootCommand(config Config) *cobra.Command {
	s := &Session{Config: config}
	root := &cobra.Command{
		Use:   "moorage-sandbox",
		Short: "A real Kubernetes cluster in one binary, with a simulated disk service as the judge",
		Long: "A real etcd, kube-apiserver, kube-controller-manager, scheduler, kubelets, external-attacher and CSI driver,\n" +
			"as processes of this machine, without a container engine. Pods mount volumes and don't run programs, unless --real has\n" +
			"nodes run containers and mount disks.",
		SilenceUsage:               true,
		SilenceErrors:              true,
		TraverseChildren:           true,
		SuggestionsMinimumDistance: 2,
		Args:                       knownCommand,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	flags := root.PersistentFlags()
	flags.StringVar(&s.dir, "dir", "", "folder for clusters (default "+sandbox.DefaultBaseDir()+")")
	flags.StringVar(&s.name, "name", "", "name of the cluster (default: the only one, or a free one)")
	flags.BoolVar(&s.json, "json", false, "print JSON")
	root.AddCommand(
		newUpCommand(s), newDownCommand(s), newStatusCommand(s), newKubectlCommand(s), newListCommand(s),
		newRunCommand(s), newDemoCommand(s), newFaultCommand(s), newJudgeCommand(s), newReplayCommand(),
	)
	for _, build := range config.Commands {
		root.AddCommand(build(s))
	}
	return root
}
