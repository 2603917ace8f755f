// SPDX-License-Identifier: Apache-2.0

// Package list is kubectl moorage volumes, nodes and tickets: tables, once or with every change.
//
// Reads: the ledger's objects. Decides and writes nothing.
package list

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
)

type lister struct {
	base   *command.Base
	output *screen.Output
	kind   string // of an item, for programs
	// labelled names the objects whose labels --selector reads.
	labelled string
	// list computes the items and their table; an empty namespace: all.
	list       func(w *facts.World, namespace string, args []string, s screen.Style) (items []screen.Item, table *screen.Table)
	everywhere *bool
	selector   string
	legend     string
	// words: the list has the nodes' own reports.
	words bool
}

func (l *lister) command(use, short string, aliases ...string) *cobra.Command {
	l.output = screen.NewOutput(true)
	cmd := &cobra.Command{
		Use: use, Short: short, Aliases: aliases, Args: noNames,
		RunE: func(cmd *cobra.Command, args []string) error { return l.run(cmd.Context(), args) },
	}
	l.output.AddFlags(cmd)
	cmd.Flags().StringVarP(&l.selector, "selector", "l", "", "List only what has these labels, such as app=db: "+l.labelled)
	if l.everywhere != nil {
		cmd.Flags().BoolVarP(l.everywhere, "all-namespaces", "A", false, "List across all namespaces, and what is in none")
	}
	return cmd
}

func noNames(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%s lists all, and takes no name such as %q: choose with -n, -A or -l, or explain one with kubectl moorage explain pvc NAME", cmd.CommandPath(), args[0])
}

func (l *lister) run(ctx context.Context, args []string) error {
	if err := l.output.Validate(); err != nil {
		return err
	}
	if _, err := labels.Parse(l.selector); err != nil {
		return fmt.Errorf("--selector %q: %w", l.selector, err)
	}
	c, err := l.base.Connect()
	if err != nil {
		return err
	}
	namespace := ""
	if l.everywhere != nil && !*l.everywhere {
		namespace = c.Namespace
	}
	w, err := c.Read(ctx)
	if err != nil {
		return err
	}
	if err := l.missing(w, args); err != nil {
		return err
	}
	style, streams := l.base.Style(), l.base.Streams
	items, table := l.list(w, namespace, args, style)
	if l.output.Structured() {
		return l.output.PrintList(streams.Out, style, l.kind+"List", items)
	}
	unseen := w.Unseen
	if l.words && w.Served() && w.WordsUnseen != nil {
		unseen = append(slices.Clone(unseen), *w.WordsUnseen)
	}
	if err := screen.Unseen(streams.ErrOut, screen.StyleOf(streams.ErrOut), unseen); err != nil {
		return err
	}
	if err := screen.Down(streams.ErrOut, screen.StyleOf(streams.ErrOut), w.ControllersDown(), w.Now); err != nil {
		return err
	}
	if table.Len() == 0 {
		return l.none(ctx, c, w, namespace)
	}
	if err := table.Print(streams.Out, l.output, style); err != nil {
		return err
	}
	if l.legend != "" && style.Terminal {
		_, err := fmt.Fprintln(streams.Out, l.legend)
		return err
	}
	return nil
}

func (l *lister) none(ctx context.Context, c *cluster.Cluster, w *facts.World, namespace string) error {
	where := ""
	if namespace != "" {
		where = " in " + namespace + " namespace"
	}
	seen := "No resources found%s.\n"
	if slices.ContainsFunc(w.Unseen, func(u facts.Unseen) bool { return !u.Missing }) {
		seen = "Nothing is found%s in what you may list.\n"
	}
	if l.kind == "Ticket" && !w.Served() {
		seen, where = "Moorage is not installed in this cluster: there are no tickets%s.\n", ""
	}
	if none := command.NoNamespace(ctx, c, namespace); none != "" {
		seen, where = "%s\n", facts.Sentence(none)
	}
	_, err := fmt.Fprintf(l.base.Streams.ErrOut, seen, where)
	return err
}

// missing is the error for the first unknown node without volumes.
func (l *lister) missing(w *facts.World, args []string) error {
	bound := map[string]bool{}
	if len(args) > 0 {
		for _, n := range w.ListNodes() {
			bound[n.Node] = n.Missing
		}
	}
	for _, name := range args {
		if w.Node(name) == nil && !bound[name] {
			return command.Missing(w.Unseen, "nodes", "", name)
		}
	}
	return nil
}

func (l *lister) chosen(set map[string]string) bool {
	selector, err := labels.Parse(l.selector)
	return err == nil && selector.Matches(labels.Set(set))
}

func itemsOf[T any](list []T) []screen.Item {
	var items []screen.Item
	for _, x := range list {
		items = append(items, screen.Item{Value: x})
	}
	return items
}

const statusHelp = "STATUS is why the volume waits, in a word of docs/reasons.md; or where it stands: NotProvisioned (the claim has no volume yet), Free (at no node), Reserved (promised to a pod or ticket), " +
	"Attaching, Attached, InUse (its node's kubelet reports it as in use, or nobody can say that it is not), Kept (for a while, by detachDelay), Detaching, Unknown (nobody can say whether the node still has it). Why one is so: kubectl moorage explain pvc NAME."

// NewVolumesCommand makes kubectl moorage volumes.
func NewVolumesCommand(b *command.Base) *cobra.Command {
	l := &lister{base: b, kind: "Volume", everywhere: new(bool), labelled: "those of its claim"}
	l.list = func(w *facts.World, namespace string, _ []string, _ screen.Style) ([]screen.Item, *screen.Table) {
		all := append(w.ListVolumes(namespace), w.ListUnbound(namespace)...)
		slices.SortStableFunc(all, func(a, b facts.Volume) int { return cmp.Compare(a.Claim, b.Claim) })
		list := slices.DeleteFunc(all, func(v facts.Volume) bool { return !l.chosen(w.ClaimLabels(v.Claim)) })
		return itemsOf(list), screen.Volumes(list, w.Now)
	}
	cmd := l.command("volumes", "List volumes: where each is, who uses it, who waits for it", "volume", "vol")
	cmd.Long = "List volumes: where each is, who uses it, who waits for it.\n\n" + statusHelp
	cmd.Example = "  # Every volume of the cluster\n  kubectl moorage volumes -A\n\n" +
		"  # Who holds the volumes of an application\n  kubectl moorage volumes -l app=db"
	return cmd
}

// NewTicketsCommand makes kubectl moorage tickets.
func NewTicketsCommand(b *command.Base) *cobra.Command {
	l := &lister{base: b, kind: "Ticket", everywhere: new(bool), labelled: "those of the VolumeTicket"}
	l.list = func(w *facts.World, namespace string, _ []string, _ screen.Style) ([]screen.Item, *screen.Table) {
		list := slices.DeleteFunc(w.ListTickets(namespace), func(t facts.Ticket) bool { return !l.chosen(w.TicketLabels(t)) })
		return itemsOf(list), screen.Tickets(list, w.Now)
	}
	cmd := l.command("tickets", "List tickets: who asks for volumes where, and who has them", "ticket", "vt")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return fmt.Errorf("%s has no command %q: make, explain, renew, let-go and end take a name, and without one all are listed", cmd.CommandPath(), args[0])
	}
	cmd.Example = "  # Who asks, in the order in which they are granted\n  kubectl moorage tickets -A"
	return cmd
}

// NewNodesCommand makes kubectl moorage nodes.
func NewNodesCommand(b *command.Base) *cobra.Command {
	l := &lister{base: b, kind: "NodeSlots", legend: screen.BarLegend, labelled: "those of the node", words: true}
	l.list = func(w *facts.World, _ string, args []string, s screen.Style) ([]screen.Item, *screen.Table) {
		list := slices.DeleteFunc(w.ListSlots(), func(x facts.Slots) bool {
			return len(args) > 0 && !slices.Contains(args, x.Node) || !l.chosen(w.NodeLabels(x.Node))
		})
		return itemsOf(list), screen.Slots(list, s)
	}
	cmd := l.command("nodes [NODE…]", "List nodes and drivers: how their slots are taken", "node", "slots")
	cmd.Example = "  # How full are the nodes of a zone?\n  kubectl moorage nodes -l topology.kubernetes.io/zone=a\n\n  # What takes the slots of one node?\n  kubectl moorage nodes worker-1 -o yaml"
	cmd.Args, cmd.ValidArgsFunction = cobra.ArbitraryArgs, b.Complete(command.Names("nodes"))
	return cmd
}
