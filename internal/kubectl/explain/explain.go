// SPDX-License-Identifier: Apache-2.0

// Package explain is kubectl moorage explain: why a pod does not run, who has
// a claim's volume, and what will change it.
//
// Reads: everything the ledger is made of. Decides: nothing. Writes: nothing.
package explain

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
)

// NewCommand makes the command.
func NewCommand(b *command.Base) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain (pod|pvc|pv) NAME",
		Short: "Say why a pod does not run, who has a volume, and what will change it",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(subject{
		use: "pod", aliases: []string{"pods", "po"}, short: "Say which volume a pod waits for, who has it and why", names: command.PodNames, explain: explainPod,
	}.command(b))
	cmd.AddCommand(subject{
		use: "pvc", aliases: []string{"pvcs", "persistentvolumeclaim", "persistentvolumeclaims", "claim"},
		short: "Say where a claim's volume is, and who waits for it", names: command.ClaimNames, explain: explainClaim,
	}.command(b))
	cmd.AddCommand(subject{
		use: "pv", aliases: []string{"pvs", "persistentvolume", "persistentvolumes", "volume"},
		short: "Say where a PersistentVolume is, and who waits for it", names: command.VolumeNames, explain: explainVolume,
	}.command(b))
	return cmd
}

// subject is a kind of object that can be explained.
type subject struct {
	use, short string
	aliases    []string
	names      func(context.Context, *cluster.Cluster, []string) []string
	explain    func(w *facts.World, namespace, name string) (explained, error)
}

// explained is the answer: its kind and value for programs, and its screen.
type explained struct {
	kind  string
	value any
	print func(b *command.Base, s screen.Style) error
}

func (x subject) command(b *command.Base) *cobra.Command {
	output := screen.NewOutput(false)
	cmd := &cobra.Command{
		Use: x.use + " NAME", Aliases: x.aliases, Short: x.short,
		Args: cobra.ExactArgs(1), ValidArgsFunction: b.Complete(x.names),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := output.Validate(); err != nil {
				return err
			}
			c, w, err := b.Read(cmd.Context())
			if err != nil {
				return err
			}
			answer, err := x.explain(w, c.Namespace, args[0])
			if err != nil {
				return err
			}
			if output.Structured() {
				return output.Print(b.Streams.Out, answer.kind, answer.value)
			}
			return answer.print(b, b.Style())
		},
	}
	output.AddFlags(cmd)
	return cmd
}

func explainPod(w *facts.World, namespace, name string) (explained, error) {
	pod := w.Pod(namespace, name)
	if pod == nil {
		return explained{}, missing(w, "pods", namespace, name)
	}
	x := w.ExplainPod(pod)
	return explained{"PodExplanation", x, func(b *command.Base, s screen.Style) error { return screen.Pod(b.Streams.Out, s, x, w.Now) }}, nil
}

func explainClaim(w *facts.World, namespace, name string) (explained, error) {
	claim := w.Claim(namespace, name)
	if claim == nil {
		return explained{}, missing(w, "persistentvolumeclaims", namespace, name)
	}
	x := w.ExplainClaim(claim)
	return explained{"ClaimExplanation", x, func(b *command.Base, s screen.Style) error {
		return screen.Storage(b.Streams.Out, s, "pvc", x, w.Now)
	}}, nil
}

func explainVolume(w *facts.World, _, name string) (explained, error) {
	pv := w.PersistentVolume(name)
	if pv == nil {
		return explained{}, missing(w, "persistentvolumes", "", name)
	}
	x := w.ExplainPersistentVolume(pv)
	return explained{"VolumeExplanation", x, func(b *command.Base, s screen.Style) error {
		return screen.Storage(b.Streams.Out, s, "pv", x, w.Now)
	}}, nil
}

// missing tells an object that is not there from one that may not be read.
func missing(w *facts.World, resource, namespace, name string) error {
	for _, u := range w.Unseen {
		if u.Resource == resource && (u.Namespace == "" || u.Namespace != namespace) {
			return fmt.Errorf("%s %q can't be read: the right to list %s is missing (kubectl auth can-i list %s): %s", resource, name, resource, resource, u.Message)
		}
	}
	if namespace != "" {
		return fmt.Errorf("%s %q not found in namespace %q", resource, name, namespace)
	}
	return fmt.Errorf("%s %q not found", resource, name)
}
