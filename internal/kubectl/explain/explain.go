// SPDX-License-Identifier: Apache-2.0

// Package explain is kubectl moorage explain: why a pod or workload does not run, which node has a claim's
// volume, how a node serves, and what will change it. It writes nothing.
package explain

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
)

const examples = `  # Why does a pod not run?
  kubectl moorage explain pod db-0
  kubectl moorage explain pod/db-0 -n shop -o wide

  # Why does a rollout not get on? The same for deployment, job, daemonset
  kubectl moorage explain statefulset/db

  # Where is a claim's volume, and who waits for it?
  kubectl moorage explain pvc data-db-0

  # Why does a backup not get its volumes?
  kubectl moorage explain ticket/nightly -n shop

  # What waits for a node that is not ready?
  kubectl moorage explain node worker-3

  # Every pod that waits
  kubectl moorage explain pods -A

  # Each pod with a label
  kubectl moorage explain pods -l app=db --all`

// NewCommand makes the command.
func NewCommand(b *command.Base) *cobra.Command {
	x := &explainer{base: b, output: screen.NewOutput(false)}
	cmd := &cobra.Command{
		Use:   "explain (TYPE NAME… | TYPE/NAME…)",
		Short: "Say why a pod does not run, where a volume is, and what to do",
		Long: "Say why a pod or workload does not run, where a volume is, and what to do.\n\n" +
			"The first line is the answer, the second what to do; -o wide shows all details. It also finds causes that are no volume: " +
			"nodes, schedulers, images, missing ConfigMaps, failing containers and components that are down.\n\n" +
			"Types: " + strings.Join(typeNames(), ", ") + ". Works on clusters without Moorage.",
		Example: examples,
		Args: func(_ *cobra.Command, args []string) error {
			_, err := parseSubjects(args, x.selector)
			return err
		},
		ValidArgsFunction: b.Complete(completeSubjects),
		RunE:              func(cmd *cobra.Command, args []string) error { return x.run(cmd.Context(), args) },
	}
	x.output.AddFlags(cmd)
	cmd.Flags().StringVarP(&x.selector, "selector", "l", "", "Explain all pods, claims or nodes with these labels, such as app=db")
	cmd.Flags().BoolVarP(&x.everywhere, "all-namespaces", "A", false, "Explain all pods, claims or tickets, of every namespace")
	cmd.Flags().BoolVar(&x.all, "all", false, "Of all pods, claims or nodes, also explain those that wait for nothing")
	return cmd
}

// NewTicketCommand makes kubectl moorage ticket explain: explain ticket.
func NewTicketCommand(b *command.Base) *cobra.Command {
	x := &explainer{base: b, output: screen.NewOutput(false)}

	cmd := &cobra.Command{
		Use: "explain NAME…", Short: "Say why a ticket waits, what changes it and when it ends",
		Example: "  # Why does a backup not get its volumes?\n  kubectl moorage ticket explain nightly -n shop -o wide",
		Args:    cobra.MinimumNArgs(1), ValidArgsFunction: b.Complete(command.Names("volumetickets.moorage.dev")),
		RunE: func(cmd *cobra.Command, args []string) error {
			return x.run(cmd.Context(), append([]string{"ticket"}, args...))
		},
	}
	x.output.AddFlags(cmd)
	return cmd
}

type explainer struct {
	base       *command.Base
	output     *screen.Output
	selector   string
	all        bool
	everywhere bool
	said       []facts.Unseen
}

func (x *explainer) run(ctx context.Context, args []string) error {
	if err := x.output.Validate(); err != nil {
		return err
	}
	subjects, err := parseSubjects(args, x.selector)
	if err != nil {
		return err
	}
	if x.everywhere && subjects[0].name != "" {
		return errors.New("--all-namespaces takes one type, and no name: pods, pvcs or tickets")
	}
	c, err := x.base.Connect()
	if err != nil {
		return err
	}
	c.Namespace = cmp.Or(subjects[0].namespace, c.Namespace)
	w, err := c.Read(ctx)
	if err != nil {
		return err
	}
	return x.explain(ctx, c, w, subjects)
}

func (x *explainer) explain(ctx context.Context, c *cluster.Cluster, w *facts.World, subjects []subject) error {
	var answers []Answer
	for _, s := range subjects {
		in, unseen := *c, w.Unseen
		if in.Namespace = cmp.Or(s.namespace, c.Namespace); x.everywhere {
			in.Namespace = ""
		}
		list, err := s.expand(w, in.Namespace, x.selector)
		if err != nil {
			return err
		}
		for _, object := range list {
			in.Namespace = object.Namespace
			a, err := s.kind.explain(ctx, &in, w, object.Name)
			if missing := (*command.NotFoundError)(nil); errors.As(err, &missing) && s.kind.namespaced {
				if none := command.NoNamespace(ctx, c, in.Namespace); none != "" {
					err = &command.NotFoundError{Message: none}
				}
			}
			if err != nil {
				return err
			}
			if unseen = a.unseen; s.name == "" && !x.all && a.Cause == nil {
				continue
			}
			answers = append(answers, a)
		}
		if s.name == "" && len(answers) == 0 && !x.output.Structured() {
			if err := screen.Unseen(x.base.Streams.ErrOut, screen.StyleOf(x.base.Streams.ErrOut), unseen); err != nil {
				return err
			}
			if len(list) == 0 {
				x.sayNone(ctx, c, s)
			} else {
				fmt.Fprintf(x.base.Streams.ErrOut, "%s, and nothing is known to keep any. --all explains them.\n", facts.Count(len(list), s.kind.name))
			}
		}
	}
	if x.output.Structured() && (len(subjects) > 1 || subjects[0].name == "") {
		return x.printList(subjects[0].kind.explained, answers)
	}
	for i, a := range answers {
		if err := x.print(a, i > 0); err != nil {
			return err
		}
	}
	return nil
}

func (x *explainer) sayNone(ctx context.Context, c *cluster.Cluster, s subject) {
	text := fmt.Sprintf("No %s found", s.kind.plural)
	if s.kind.namespaced && !x.everywhere {
		text += " in namespace " + c.Namespace
	}
	if x.selector != "" {
		text += " with labels " + x.selector
	}
	if none := command.NoNamespace(ctx, c, c.Namespace); none != "" && s.kind.namespaced && !x.everywhere {
		text = none
	}
	fmt.Fprintln(x.base.Streams.ErrOut, text+".")
}

// printList prints one list, of the answers' kind if they have one.
func (x *explainer) printList(kind string, answers []Answer) error {
	var items []screen.Item
	for _, a := range answers {
		items = append(items, screen.Item{Kind: a.Kind, Value: a.Value})
		if a.Kind != kind {
			kind = "Explanation"
		}
	}
	return x.output.PrintList(x.base.Streams.Out, x.base.Style(), kind+"List", items)
}

// Of explains an object like explain -o wide. The world stays unchanged: events and Leases are read for
// this answer only.
func Of(ctx context.Context, c *cluster.Cluster, w *facts.World, s screen.Style, typeName, namespace, name string) (Answer, string, error) {
	k, err := kindOf(typeName)
	if err != nil {
		return Answer{}, "", err
	}
	in, world := *c, *w
	in.Namespace, world.Evidence = namespace, facts.Evidence{}
	a, err := k.explain(ctx, &in, &world, name)
	if err != nil {
		return Answer{}, "", err
	}
	var text bytes.Buffer
	err = a.print(screen.Visible(&text), s, true)
	return a, text.String(), err
}

// Answer explains an object.
type Answer struct {
	Kind   string // of Value
	Answer string
	Cause  *facts.Reason // nil: nothing is wrong
	Value  any           // a type of facts, for programs
	unseen []facts.Unseen
	print  func(w io.Writer, s screen.Style, wide bool) error
}

func (x *explainer) print(a Answer, another bool) error {
	if x.output.Structured() {
		return x.output.Print(x.base.Streams.Out, x.base.Style(), a.Kind, a.Value)
	}
	if another {
		fmt.Fprintln(x.base.Streams.Out)
	}
	style := x.base.Style()
	style.UnseenSaid = another && slices.Equal(a.unseen, x.said)
	x.said = a.unseen
	return a.print(x.base.Streams.Out, style, x.output.Wide())
}
