// SPDX-License-Identifier: Apache-2.0

// Package timeline is kubectl moorage timeline: what a pod's start has spent
// its time on.
//
// Reads: everything the ledger is made of, and the pod's events. Decides:
// nothing. Writes: nothing.
package timeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
)

// NewCommand makes the command.
func NewCommand(b *command.Base) *cobra.Command {
	output := screen.NewOutput(false)
	var watch bool
	cmd := &cobra.Command{
		Use: "timeline POD", Short: "Show when a pod was created, reserved for, bound, attached and started",
		Long: "Show when a pod was created, reserved for, granted, bound, when each volume was attached, when all were safe to mount, and when it ran.\n\n" +
			"The times are those of the objects in the API, most of which have whole seconds. A time with ≤ is the latest possible: the object that had it is gone. " +
			"That a volume waited for its turn at the driver (Queued, workers of an AttachPolicy) stands in the pod's events only: waits of less than 30 s, or of events that are gone, are not shown.",
		Example: "  # Where did a pod's start spend its time?\n  kubectl moorage timeline db-0 -n shop\n\n  # Each step of one that is about to be made\n  kubectl moorage timeline db-0 -w",
		Args:    command.One("pod", "kubectl moorage timeline POD"), ValidArgsFunction: b.Complete(command.PodNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := output.Validate(); err != nil {
				return err
			}
			name, err := podOf(args[0])
			if err != nil {
				return err
			}
			c, err := b.Connect()
			if err != nil {
				return err
			}
			if watch {
				return follow(cmd.Context(), b, c, output, name)
			}
			w, err := c.Read(cmd.Context())
			if err != nil {
				return err
			}
			x, err := Of(cmd.Context(), c, w, name, nil)
			if err != nil {
				return err
			}
			if output.Structured() {
				return output.Print(b.Streams.Out, b.Style(), "Timeline", x)
			}
			return screen.Timeline(b.Streams.Out, b.Style(), x, w.Now)
		},
	}
	output.AddFlags(cmd)
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "Print each step as it is taken, until the pod runs")
	return cmd
}

// podOf is the name of the pod that was named as NAME or pod/NAME.
func podOf(arg string) (string, error) {
	kind, name, typed := strings.Cut(arg, "/")
	switch {
	case !typed:
		return arg, nil
	case slices.Contains([]string{"pod", "pods", "po"}, kind) && name != "":
		return name, nil
	}
	return "", fmt.Errorf("%q: a timeline is of one pod: kubectl moorage timeline POD (kubectl moorage explain %s is about others)", arg, arg)
}

func inNamespace(pods []*corev1.Pod, namespace string) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return p.Namespace != namespace })
}

// Of tells the timeline of a pod that is there, in the cluster's namespace. before are the
// steps that were seen earlier.
func Of(ctx context.Context, c *cluster.Cluster, w *facts.World, name string, before []facts.Step) (facts.Timeline, error) {
	pod := w.Pod(c.Namespace, name)
	if pod == nil {
		missing := command.Missing(w.Unseen, "pods", c.Namespace, name, command.ObjectNames(inNamespace(w.Pods, c.Namespace)))
		return facts.Timeline{}, command.InNamespace(ctx, c, command.Elsewhere(missing, w.Pods, name))
	}
	events, err := eventsOf(ctx, c, pod)
	if err != nil {
		return facts.Timeline{}, err
	}
	return w.Timeline(pod, events, before), nil
}

// eventsOf lists a pod's events; none where they may not be read: the
// conditions say the same, less exactly.
func eventsOf(ctx context.Context, c *cluster.Cluster, pod *corev1.Pod) ([]corev1.Event, error) {
	selector := fields.OneTermEqualSelector("involvedObject.uid", string(pod.UID)).String()
	list, err := c.Kube.CoreV1().Events(pod.Namespace).List(ctx, metav1.ListOptions{FieldSelector: selector})
	switch {
	case apierrors.IsForbidden(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("list the pod's events: %w", err)
	}
	return list.Items, nil
}

var errDone = errors.New("the pod has reached the last stage")

// follow prints the steps as they are seen, until the pod runs. One that is
// named before it exists is waited for.
func follow(ctx context.Context, b *command.Base, c *cluster.Cluster, output *screen.Output, name string) error {
	type key struct {
		stage  facts.Stage
		volume string
	}
	printed := map[key]bool{}
	var seen []facts.Step
	err := c.Follow(ctx, func(w *facts.World) error {
		if w.Pod(c.Namespace, name) == nil {
			return nil
		}
		x, err := Of(ctx, c, w, name, seen)
		if err != nil {
			return err
		}
		for _, step := range x.Steps {
			k := key{step.Stage, step.Volume}
			if printed[k] {
				continue
			}
			printed[k], seen = true, append(seen, step)
			if output.Structured() {
				err = output.Print(b.Streams.Out, b.Style(), "Step", step)
			} else {
				_, err = fmt.Fprint(b.Streams.Out, screen.StepLine(b.Style(), step))
			}
			if err != nil {
				return err
			}
		}
		if x.Done {
			return errDone
		}
		return nil
	})
	if errors.Is(err, errDone) {
		return nil
	}
	return err
}
