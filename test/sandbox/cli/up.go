// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/moorage-dev/moorage/test/sandbox"
)

type shapeFlags struct {
	shape    sandbox.Shape
	mode     string
	attacher string
	keep     bool
	// controlPlane and kubelets are binaries of other releases of Kubernetes; empty: this one.
	controlPlane, kubelets string
}

func (f *shapeFlags) add(fs *pflag.FlagSet) {
	f.shape = sandbox.DefaultShape()
	fs.StringVar(&f.mode, "mode", string(f.shape.Mode), "standalone, cooperative, upstream or upstream-tuned")
	fs.IntVar(&f.shape.Nodes, "nodes", f.shape.Nodes, "number of nodes")
	fs.IntVar(&f.shape.Slots, "slots", f.shape.Slots, "volumes that a node can attach")
	fs.IntVar(&f.shape.Zones, "zones", 0, "zones that the nodes are in, by turns; a disk is in one of them (needs --operations)")
	fs.DurationVar(&f.shape.AttachLatency, "attach-latency", 0, "how long the disk service takes to attach")
	fs.DurationVar(&f.shape.DetachLatency, "detach-latency", 0, "how long the disk service takes to detach")
	fs.DurationVar(&f.shape.KubeletStatusInterval, "kubelet-status-interval", f.shape.KubeletStatusInterval,
		"the kubelets' nodeStatusUpdateFrequency, which bounds how soon they mount")
	fs.BoolVar(&f.shape.Operations.On, "operations", false, "have the driver make snapshots, clones and larger volumes, with the sidecars that ask it to")
	fs.StringVar(&f.shape.Operations.AttachFor, "attach-for", "", "operations that the driver refuses unless the volume is attached: snapshot, clone, expansion, with commas")
	fs.StringVar(&f.shape.Operations.DetachFor, "detach-for", "", "operations that the driver refuses unless the volume is attached nowhere")
	fs.DurationVar(&f.shape.Operations.CopyLatency, "copy-latency", 0, "how long a snapshot, a clone or a restore takes")
	fs.BoolVar(&f.shape.Operations.CopyInBackground, "copy-in-background", false, "answer a snapshot at once, and have it ready when it is copied")
	fs.StringVar(&f.shape.Kubernetes, "kubernetes", "", "minor release that the control plane and the kubelets emulate: "+strings.Join(sandbox.EmulatedReleases(), ", ")+" (default: their own)")
	f.addCommon(fs)
}

func (f *shapeFlags) addCommon(fs *pflag.FlagSet) {
	fs.StringVar(&f.attacher, "attacher", "", "moorage, stock, or the path of a csi-attacher (default: $"+sandbox.AttacherEnv+", or stock)")
	fs.StringVar(&f.controlPlane, "control-plane", "", "binary of another release of Kubernetes (make bin/kubernetes-1.35) that runs the control plane")
	fs.StringVar(&f.kubelets, "kubelets", "", "binary of another release of Kubernetes that runs the nodes")
	fs.BoolVar(&f.shape.Real, "real", false, "have nodes run containers and mount disks (make real builds what they need; it needs root)")
	fs.BoolVar(&f.keep, "keep", false, "keep the cluster's folder, with its logs")
}

func (s *Session) options(f *shapeFlags) (sandbox.Options, error) {
	o := s.Options()
	o.Shape, o.Attacher, o.Keep = f.shape, f.attacher, f.keep
	o.ControlPlane, o.Kubelets = f.controlPlane, f.kubelets
	if f.mode != "" {
		mode, err := sandbox.ParseMode(f.mode)
		if err != nil {
			return o, err
		}
		o.Mode = mode
	}
	return o, nil
}

func newUpCommand(s *Session) *cobra.Command {
	var f shapeFlags
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start a cluster, print its kubeconfig's path and run until interrupted",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return s.up(cmd.Context(), &f, cmd.OutOrStdout()) },
	}
	f.add(cmd.Flags())
	return cmd
}

func (s *Session) up(ctx context.Context, f *shapeFlags, out io.Writer) error {
	options, err := s.options(f)
	if err != nil {
		return err
	}
	cluster, err := sandbox.Start(ctx, options)
	if err != nil {
		return err
	}
	if s.json {
		err = printJSON(out, cluster.Info())
	} else {
		_, err = fmt.Fprintln(out, cluster.Kubeconfig())
	}
	if err == nil {
		fmt.Fprintf(os.Stderr, `Logs are in %[1]s/logs. Ctrl-C stops the cluster.
Try, in another terminal:
  export KUBECONFIG=%[2]s
  %[3]s kubectl apply -f docs/example.yaml                    # a Deployment with a volume
  %[3]s kubectl moorage explain deployment/web -n shop        # why does it not run?
  %[3]s fault detach --times 0                                # each detach fails, until: fault heal
  %[3]s kubectl drain --ignore-daemonsets $(%[3]s kubectl get pods -n shop -o jsonpath='{.items[0].spec.nodeName}')
  %[3]s kubectl moorage explain deployment/web -n shop        # now it waits
  %[3]s judge                                                 # what the disk service saw
`, cluster.Dir(), cluster.Kubeconfig(), s.program())
		select {
		case <-ctx.Done():
		case <-cluster.StopRequested():
		case <-cluster.Failed():
			err = cluster.Failure()
		}
	}
	if stopErr := cluster.Stop(); err == nil {
		err = stopErr
	}
	return err
}

func (s *Session) program() string {
	program := os.Args[0]
	if s.dir != "" {
		program += " --dir " + s.dir
	}
	if s.name != "" {
		program += " --name " + s.name
	}
	return program
}

func newDownCommand(s *Session) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Stop a cluster that `up` runs",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			remote, err := sandbox.Find(cmd.Context(), s.dir, s.name)
			if err != nil {
				return err
			}
			return remote.Stop(cmd.Context())
		},
	}
}

func newStatusCommand(s *Session) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "List the running clusters and their processes",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			running, err := sandbox.List(cmd.Context(), s.dir)
			if err != nil {
				return err
			}
			if s.name != "" {
				if _, err := sandbox.Find(cmd.Context(), s.dir, s.name); err != nil {
					return err
				}
				running = slices.DeleteFunc(running, func(c sandbox.Info) bool { return c.Name != s.name })
			}
			if s.json {
				return printJSON(cmd.OutOrStdout(), running)
			}
			return printClusters(cmd.OutOrStdout(), running)
		},
	}
}

func printJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}
