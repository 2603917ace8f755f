// SPDX-License-Identifier: Apache-2.0

// Package drain has kubectl moorage drain-plan and kubectl moorage drain, which evicts pods as their
// volumes find room elsewhere. It creates Evictions with the pods' UIDs as precondition:
// k8s.io/kubectl/pkg/drain evicts by name only, and doubles the program's size.
package drain

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
)

const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

const (
	lookEvery   = time.Second
	retryAfter  = 5 * time.Second  // until the next request, as by kubectl drain
	seenAfter   = 15 * time.Second // until an evicted pod is seen to end
	nobodyAfter = 30 * time.Second // until a claim has no next pod
	awayAtMost  = 2 * time.Minute  // a pod that does not end, or is not back, then delays no others
	// afterCordon is how long a scheduler may not have seen the cordon.
	afterCordon = 10 * time.Second
	// evictionPatience bounds an eviction: the API server first calls webhooks.
	evictionPatience = 30 * time.Second
)

type drainer struct {
	base    *command.Base
	node    string
	uid     types.UID // the Node's
	atOnce  int
	timeout time.Duration
	dryRun  string
	output  string // or wide
	grace   int64  // seconds; negative: each pod's
	only    string
	// selector is --pod-selector; began is by the API server's clock.
	selector                                                   labels.Selector
	began                                                      time.Time
	ignoreDaemonSets, ignoreTickets, deleteEmptyDirData, force bool

	say   func(format string, args ...any)
	left  map[types.UID]*departure
	stays map[types.UID]stay
	last  string // about the end's obstacles
}

// departure is a pod from its eviction until its volumes' next pod runs elsewhere.
type departure struct {
	pod           *corev1.Pod
	evicted, gone time.Time
	back          bool   // its next pod runs, or there is none
	waits         string // its next pod's wait
}

// stay is why a pod is not evicted yet, and the next request's time.
type stay struct {
	why   string
	until time.Time
}

// NewCommand makes kubectl moorage drain.
func NewCommand(b *command.Base) *cobra.Command {
	d := &drainer{base: b, left: map[types.UID]*departure{}, stays: map[types.UID]stay{}}
	d.say = func(format string, args ...any) { _ = b.Say(b.Streams.Out, format, args...) } // a closed output stops no drain
	cmd := &cobra.Command{
		Use: "drain NODE", Short: "Evict the pods of a node as their volumes find room elsewhere",
		Long: "Cordon a node, and evict its pods as their volumes find room elsewhere.\n\n" +
			"A pod whose volumes no other node can take keeps running until one can. At most --at-once of the others are between two nodes at a time, so that none waits long for the detaches of the rest. Pods are evicted, not deleted, so disruption budgets hold.\n\n" +
			"It ends when the pods have left and nothing is mounted there except volumes of pods that stay on purpose. It also waits for volumes that only a VolumeTicket keeps there, since no kubelet knows what uses them; --ignore-tickets does not. You may interrupt it and start it again at any time.\n\n" +
			"Exit code: 0 when the node is drained, 2 when pods or volumes stay until --timeout, when pods were made there after the cordon, or when the node is not ready, 130 when it was interrupted, 1 when something failed. With --dry-run: 0 when all pods could go at once, else 2.",
		Example: "  # Empty a node, as kubectl drain with the same flags\n  kubectl moorage drain worker-1 --ignore-daemonsets\n\n" +
			"  # What would it do?\n  kubectl moorage drain worker-1 --ignore-daemonsets --dry-run",
		Args: command.One("node", "kubectl moorage drain NODE"), ValidArgsFunction: b.Complete(command.Names("nodes")),
		RunE: func(cmd *cobra.Command, args []string) error {
			d.node = nodeNamed(args[0])
			return d.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.IntVar(&d.atOnce, "at-once", 10, "How many pods with volumes may be between two nodes")
	f.DurationVar(&d.timeout, "timeout", 0, "For how long to try; 0 is without end")
	f.StringVar(&d.dryRun, "dry-run", dryRunNone, "client or server: say what would be done, and change nothing; server also asks disruption budgets")
	f.Lookup("dry-run").NoOptDefVal = dryRunClient
	f.BoolVar(&d.ignoreDaemonSets, "ignore-daemonsets", false, "Leave pods of DaemonSets where they are")
	f.BoolVar(&d.ignoreTickets, "ignore-tickets", false, "Leave volumes there that only VolumeTickets keep")
	f.BoolVar(&d.deleteEmptyDirData, "delete-emptydir-data", false, "Evict pods with emptyDir volumes, too, whose data is lost")
	f.BoolVar(&d.force, "force", false, "Evict pods that no controller makes again, too")
	f.Int64Var(&d.grace, "grace-period", -1, "Seconds that pods get to end; -1: what each asks for")
	f.StringVar(&d.only, "pod-selector", "", "Evict only pods with these labels")
	f.StringVarP(&d.output, "output", "o", "", "wide: name every pod, however many there are")
	return cmd
}

func (d *drainer) run(ctx context.Context) error {
	var err error
	switch d.selector, err = labels.Parse(d.only); {
	case err != nil:
		return fmt.Errorf("--pod-selector: %w", err)
	case d.atOnce < 1:
		return fmt.Errorf("--at-once %d: must be 1 or more", d.atOnce)
	case !slices.Contains([]string{dryRunNone, dryRunClient, dryRunServer}, d.dryRun):
		return fmt.Errorf("--dry-run %s: must be none, client or server", d.dryRun)
	case d.output != "" && d.output != "wide":
		return fmt.Errorf("--output %s: must be wide, or be left out", d.output)
	case d.timeout < 0:
		return fmt.Errorf("--timeout %s: must not be negative; 0 is without end", d.timeout)
	}
	c, w, err := d.base.Read(ctx)
	if err != nil {
		return err
	}
	n := w.Node(d.node)
	if n == nil {
		return noNode(w, d.node)
	}
	d.uid, d.began = n.UID, c.Clock()
	plan := w.DrainPlanOf(d.node, func(p *corev1.Pod) bool {
		return d.selector.Matches(labels.Set(p.Labels)) && (!d.force || !facts.MadeAgain(p) || !w.OnlyHere(p, d.node))
	})
	if len(plan.NotVisible) > 0 {
		return fmt.Errorf("where volumes have room is not known without listing %s in all namespaces: kubectl auth can-i list %s -A", strings.Join(plan.NotVisible, ", "), plan.NotVisible[0])
	}
	choice := d.choose(w)
	if choice.lacks != "" {
		return fmt.Errorf("node %s is not drained, and nothing was changed. %s", d.node, choice.lacks)
	}
	if len(choice.leave) == 0 && d.only != "" {
		d.say("no pod there has the labels of --pod-selector %s", d.only)
	}
	if kept := choice.kept(); kept != "" {
		d.say("left where they are: %s", kept)
	}
	if plan.Dead || d.dryRun != dryRunNone {
		return d.show(ctx, c, plan, w.Now, choice.leave)
	}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q},"spec":{"unschedulable":true}}`, n.UID)
	if _, err := c.Kube.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		return command.Failed("cordon node "+n.Name, "patch nodes", err)
	}
	d.say("node %s is cordoned", d.node)
	return d.follow(ctx, c)
}

// show prints a plan; with --dry-run=server also the evictions that would be refused now.
func (d *drainer) show(ctx context.Context, c *cluster.Cluster, plan facts.DrainPlan, now time.Time, leave []*corev1.Pod) error {
	plan.AsksBudgets = d.dryRun == dryRunServer
	if err := screen.DrainPlan(d.base.Streams.Out, d.base.Style(), plan, now, d.output == "wide"); err != nil {
		return err
	}
	findings := &command.ExitError{Code: command.ExitFindings}
	if plan.Dead {
		d.say("It is not drained, and nothing was changed.")
		return findings
	}
	d.say("dry run: it would evict %s", facts.Count(len(leave), "pod"))
	refused := 0
	for _, p := range leave {
		if d.dryRun != dryRunServer || p.DeletionTimestamp != nil {
			continue
		}
		if err := d.evict(ctx, c, p); err != nil {
			refused++
			d.say("%s would not be evicted now: %s", nameOf(p), err)
		}
	}
	if refused > 0 || !plan.Clear() {
		return findings
	}
	return nil
}

func (d *drainer) evict(ctx context.Context, c *cluster.Cluster, p *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, evictionPatience)
	defer cancel()
	options := &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.UID))}
	if d.dryRun == dryRunServer {
		options.DryRun = []string{metav1.DryRunAll}
	}
	if d.grace >= 0 {
		options.GracePeriodSeconds = &d.grace
	}
	return c.Kube.PolicyV1().RESTClient().Post().AbsPath("/api/v1").Namespace(p.Namespace).Resource("pods").Name(p.Name).SubResource("eviction").
		MaxRetries(0).Body(&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}, DeleteOptions: options}).Do(ctx).Error()
}

// follow evicts the pods that may go, until the node is empty.
func (d *drainer) follow(ctx context.Context, c *cluster.Cluster) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	worlds, ended := make(chan *facts.World), make(chan error, 1)
	go func() {
		ended <- c.Follow(ctx, func(w *facts.World) error {
			select {
			case worlds <- w:
			case <-ctx.Done():
			}
			return nil
		})
	}()
	var late <-chan time.Time
	if d.timeout > 0 {
		late = time.After(d.timeout)
	}
	pause := time.NewTimer(0)
	defer pause.Stop()
	remains := "Nothing was evicted: there was no time to look at the cluster"
	var world *facts.World
	for {
		select {
		case err := <-ended:
			if err == nil && ctx.Err() != nil {
				err = &command.ExitError{Code: interrupted, Message: fmt.Sprintf("broken off. Node %s stays cordoned, and pods that are being evicted go on. To go on, run the same command again; to leave it: `kubectl uncordon %s`. %s", d.node, d.node, remains)}
			}
			return err
		case <-late:
			return &command.ExitError{Code: command.ExitFindings, Message: fmt.Sprintf("timed out after %s. %s. See: kubectl moorage explain node %s", d.timeout, remains, d.node)}
		case world = <-worlds:
			continue
		case <-pause.C:
		}
		pause.Reset(lookEvery)
		if world == nil {
			continue
		}
		evict := func(p *corev1.Pod) error { return d.evict(ctx, c, p) }
		if over, _, _ := d.pass(world, c.Clock(), evict); over { // a watch lags: new lists show whether the drain is over
			fresh, failed := c.Read(ctx)
			if failed != nil {
				continue
			}
			if over, summary, err := d.pass(fresh, c.Clock(), evict); over {
				if err == nil {
					d.say("%s", summary)
				}
				return err
			}
		}
		if remains = d.remains(world); remains != d.last && len(d.choose(world).leave) == 0 {
			d.last = remains
			d.say("%s", remains)
		}
	}
}

// interrupted is a shell's exit code for SIGINT.
const interrupted = 130

// pass evicts the pods that may go now. over: the drain has ended, with a summary or an error.
func (d *drainer) pass(w *facts.World, now time.Time, evict func(*corev1.Pod) error) (over bool, summary string, err error) {
	switch n := w.Node(d.node); {
	case n == nil || n.UID != d.uid:
		return true, "", fmt.Errorf("the Node %s was deleted in the middle of the drain: nothing says whether the volumes of its pods are unmounted at the machine. Make sure that it is off before they are used elsewhere", d.node)
	case !facts.Ready(n):
		return true, "", &command.ExitError{Code: command.ExitFindings, Message: fmt.Sprintf("node %s is not ready any more, and is not drained: nothing more is evicted. What to do: kubectl moorage explain node %s", d.node, d.node)}
	case !n.Spec.Unschedulable:
		return true, "", fmt.Errorf("somebody has uncordoned node %s in the middle of the drain: nothing more is evicted, and it is not drained", d.node)
	}
	choice := d.choose(w)
	d.see(w, &choice, now)
	for _, p := range d.due(w, &choice, now) {
		err := evict(p)
		switch {
		case err == nil:
			d.left[p.UID] = &departure{pod: p, evicted: now}
			d.say("%s is evicted", nameOf(p))
		case apierrors.IsForbidden(err) && strings.Contains(err.Error(), `cannot create resource "pods/eviction"`):
			return true, "", fmt.Errorf("node %s is not drained: %w (kubectl auth can-i create pods --subresource=eviction -n %s)", d.node, err, p.Namespace)
		default:
			why := err.Error()
			if waiting := d.waiting(); apierrors.IsTooManyRequests(err) && len(waiting) > 0 { // a budget counts their absence
				why += " Not running yet: " + d.some(waiting)
			}
			d.keep(p, why, now.Add(retryAfter))
		}
	}
	there := func(p *corev1.Pod) bool { return w.ByUID(p.UID) != nil }
	switch {
	case slices.ContainsFunc(choice.leave, there) || len(d.open(w, &choice)) > 0:
		return false, "", nil
	case choice.lacks != "":
		return true, "", fmt.Errorf("node %s is not drained: pods came that need a permission. %s", d.node, choice.lacks)
	}
	summary = d.summary(w, &choice)
	for uid, why := range choice.keep {
		if why == keptBack {
			return true, "", &command.ExitError{Code: command.ExitFindings, Message: summary + ". It is not empty: pods were made there after the cordon, such as " + nameOf(w.ByUID(uid)) + ", since they tolerate it or name the node"}
		}
	}
	return true, summary, nil
}

func (d *drainer) see(w *facts.World, c *choice, now time.Time) {
	for _, p := range c.leave {
		if d.left[p.UID] == nil && p.DeletionTimestamp != nil {
			d.left[p.UID] = &departure{pod: p, evicted: now}
		}
	}
	for uid, l := range d.left {
		p := w.ByUID(uid)
		switch {
		case l.back:
			continue
		case p != nil && p.DeletionTimestamp == nil && now.Sub(l.evicted) > seenAfter:
			delete(d.left, uid)
			d.keep(p, "the API server has agreed to its eviction, and it is not being deleted", now)
			continue
		case p != nil:
			continue
		case l.gone.IsZero():
			l.gone = now
		}
		switch next := w.NextOf(l.pod, l.evicted); {
		case next == nil && (!hasClaims(l.pod) || !facts.MadeAgain(l.pod) || now.Sub(l.gone) > nobodyAfter):
			l.back = true
			d.say("%s is gone", nameOf(l.pod))
		case next == nil:
			l.waits = "not made again yet"
		case next.Status.Phase != corev1.PodRunning || next.Spec.NodeName == d.node:
			l.waits = w.WaitsFor(next)
		default:
			l.back = true
			d.say("%s runs at %s, %s after it was evicted", nameOf(next), next.Spec.NodeName, now.Sub(l.evicted).Round(100*time.Millisecond))
		}
	}
}

// due are pods that need no room, or have room elsewhere, up to the limit of volumes between two nodes.
func (d *drainer) due(w *facts.World, c *choice, now time.Time) []*corev1.Pod {
	ask := facts.DrainAsk{Node: d.node, Leave: map[types.UID]bool{}, Last: map[types.UID]bool{}}
	var due []*corev1.Pod
	mayGo := func(p *corev1.Pod) bool { return !now.Before(d.stays[p.UID].until) }
	for _, p := range c.leave {
		switch {
		case d.left[p.UID] != nil:
			ask.Leave[p.UID] = true
		case d.needsNoRoom(w, p):
			if mayGo(p) {
				due = append(due, p)
			}
		default:
			ask.Leave[p.UID], ask.Last[p.UID] = true, !d.stays[p.UID].until.IsZero()
		}
	}
	room := d.atOnce
	for _, l := range d.left {
		since := l.evicted
		if !l.gone.IsZero() {
			since = l.gone
		}
		if !l.back && hasClaims(l.pod) && facts.MadeAgain(l.pod) && now.Sub(since) <= awayAtMost {
			room--
		}
		if !l.back && !l.gone.IsZero() && facts.MadeAgain(l.pod) && w.NextOf(l.pod, l.evicted) == nil {
			ask.Gone = append(ask.Gone, l.pod)
		}
	}
	placed := w.DrainNow(ask)
	looked := map[types.UID]bool{}
	for _, s := range placed.Stay {
		if looked[s.Pod.UID] = true; !mayGo(s.Pod) {
			continue
		}
		d.keep(s.Pod, cmp.Or(s.Why, "no other node can take its volumes: "+whyNot(d.node, s.Nodes, placed.Kept)), time.Time{})
	}
	for _, p := range placed.Moves {
		looked[p.UID] = true
		switch {
		case d.left[p.UID] != nil || !mayGo(p):
		case len(placed.Down) > 0:
			d.keep(p, placed.Down[0].Message, time.Time{})
		case room > 0:
			room--
			due = append(due, p)
		default:
			d.keep(p, "its turn has not come (--at-once)", time.Time{})
		}
	}
	for uid := range ask.Leave { // pods without volumes that need room
		if p := w.ByUID(uid); !looked[uid] && p != nil && d.left[uid] == nil && mayGo(p) {
			due = append(due, p)
		}
	}
	slices.SortFunc(due, func(a, b *corev1.Pod) int { return strings.Compare(nameOf(a), nameOf(b)) })
	return due
}

// keep prints a new reason only.
func (d *drainer) keep(p *corev1.Pod, why string, until time.Time) {
	if d.stays[p.UID].why != why {
		d.say("%s stays for now: %s", nameOf(p), why)
	}
	d.stays[p.UID] = stay{why, until}
}

func (d *drainer) remains(w *facts.World) string {
	c := d.choose(w)
	var list []string
	for _, p := range c.leave {
		why := cmp.Or(d.stays[p.UID].why, "it is being looked at")
		if d.left[p.UID] != nil {
			why = "it has not ended yet"
		}
		list = append(list, fmt.Sprintf("%s (%s)", nameOf(p), strings.TrimSuffix(why, ".")))
	}
	if len(list) > 0 {
		text := "Still at the node: " + d.some(list)
		if waiting := d.waiting(); len(waiting) > 0 {
			text += ". Not running yet: " + d.some(waiting)
		}
		return text
	}
	for _, v := range d.open(w, &c) {
		why := v.Why
		if v.Ticket != "" {
			why += "; --ignore-tickets does not wait for it"
		}
		list = append(list, fmt.Sprintf("%s (%s)", v.Volume, why))
	}
	if len(list) == 0 {
		return "All pods have left"
	}
	return "All pods have left. Still mounted, as far as is known: " + d.some(list)
}

func (d *drainer) summary(w *facts.World, c *choice) string {
	text := fmt.Sprintf("node %s is drained: %s left it", d.node, facts.Count(len(d.left), "pod"))
	var used, kept []string
	if waiting := d.waiting(); len(waiting) > 0 {
		text += "; not running yet: " + d.some(waiting)
	}
	if stay := c.kept(); stay != "" {
		text += "; left where they are: " + stay
	}
	for _, v := range w.VolumesThere(d.node) {
		switch {
		case c.uses(v):
			used = append(used, v.Volume)
		case v.Ticket != "":
			kept = append(kept, v.Ticket)
		}
	}
	if len(used) > 0 {
		text += ". Don't switch it off: pods that stay there use " + d.some(used)
	}
	if len(kept) > 0 {
		text += ". Don't switch it off before who made these VolumeTickets is done with their volumes: " + d.some(slices.Compact(kept))
	}
	return text
}

// waiting lists the departed pods without a running successor, with the cause.
func (d *drainer) waiting() []string {
	var list []string
	for _, l := range slices.SortedFunc(maps.Values(d.left), func(a, b *departure) int { return strings.Compare(nameOf(a.pod), nameOf(b.pod)) }) {
		if !l.back && !l.gone.IsZero() {
			list = append(list, fmt.Sprintf("%s (%s)", nameOf(l.pod), l.waits))
		}
	}
	return list
}

func (d *drainer) some(list []string) string {
	const most = 8
	if d.output == "wide" || len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more (-o wide names them)", strings.Join(list[:most], ", "), len(list)-most)
}

// open are volumes perhaps mounted here, except those of pods that stay on purpose and of ignored tickets.
func (d *drainer) open(w *facts.World, c *choice) []facts.VolumeThere {
	return slices.DeleteFunc(w.VolumesThere(d.node), func(v facts.VolumeThere) bool { return c.uses(v) || d.ignoreTickets && v.Ticket != "" })
}

const (
	keptDaemon   = "of a DaemonSet"
	keptStatic   = "run by the kubelet from a file"
	keptSelector = "without the labels of --pod-selector"
	keptTheirs   = "of another pod, to end with that" // their eviction would take the owner's volumes
	keptBack     = "made there after the cordon, which does not keep them away"
)

type choice struct {
	leave []*corev1.Pod
	keep  map[types.UID]string
	lacks string // missing flags
}

func (c *choice) uses(v facts.VolumeThere) bool {
	return slices.ContainsFunc(v.Pods, func(uid types.UID) bool { return c.keep[uid] != "" })
}

func (c *choice) kept() string {
	count := map[string]int{}
	for _, why := range c.keep {
		count[why]++
	}
	var list []string
	for _, why := range slices.Sorted(maps.Keys(count)) {
		list = append(list, facts.Count(count[why], "pod")+" "+why)
	}
	return strings.Join(list, ", ")
}

// choose decides as kubectl drain does with the same flags.
func (d *drainer) choose(w *facts.World) choice {
	c := choice{keep: map[types.UID]string{}}
	var cordoned time.Time
	if n := w.Node(d.node); n != nil && n.Spec.Unschedulable {
		if cordoned = facts.CordonedSince(n); cordoned.IsZero() {
			cordoned = d.began
		}
	}
	var daemons, data, alone, tied []string
	for _, p := range w.Pods {
		_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
		finished := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		daemon, again := facts.DaemonSet(p), facts.MadeAgain(p)
		switch {
		case p.Spec.NodeName != d.node:
		case mirror:
			c.keep[p.UID] = keptStatic
		case !d.selector.Matches(labels.Set(p.Labels)):
			c.keep[p.UID] = keptSelector
		case finished || p.DeletionTimestamp != nil && !daemon:
			c.leave = append(c.leave, p)
		case w.OwnerPod(p) != nil:
			c.keep[p.UID] = keptTheirs
		case daemon && d.ignoreDaemonSets:
			c.keep[p.UID] = keptDaemon
		case daemon:
			daemons = append(daemons, nameOf(p))
		case again && !cordoned.IsZero() && p.CreationTimestamp.After(cordoned.Add(afterCordon)):
			c.keep[p.UID] = keptBack
		case !d.deleteEmptyDirData && slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.EmptyDir != nil }):
			data = append(data, nameOf(p))
		case !d.force && !again:
			alone = append(alone, nameOf(p))
		case !d.force && w.OnlyHere(p, d.node):
			tied = append(tied, nameOf(p))
		default:
			c.leave = append(c.leave, p)
		}
	}
	var lacks []string
	for _, l := range []struct {
		pods       []string
		what, flag string
	}{
		{daemons, "DaemonSets have pods there, which would come back at once", "--ignore-daemonsets leaves them"},
		{data, "Pods would lose what they have in emptyDir volumes", "--delete-emptydir-data evicts them"},
		{alone, "No controller would make these pods again", "--force evicts them"},
		{tied, "No other node will do for these pods with volumes, by their own node affinity or that of a volume, and they would wait for this one", "--force evicts them"},
	} {
		if len(l.pods) > 0 {
			lacks = append(lacks, fmt.Sprintf("%s: %s (%s)", l.what, d.some(l.pods), l.flag))
		}
	}
	c.lacks = strings.Join(lacks, ". ")
	return c
}

// needsNoRoom: no controller remakes the pod, or no other node can ever use its volumes.
func (d *drainer) needsNoRoom(w *facts.World, p *corev1.Pod) bool {
	return !facts.MadeAgain(p) || d.force && w.OnlyHere(p, d.node)
}

func hasClaims(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil })
}

func nameOf(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

func whyNot(drained string, verdicts []facts.NodesVerdict, kept bool) string {
	var list []string
	for _, v := range verdicts {
		nodes := slices.DeleteFunc(slices.Clone(v.Nodes), func(n string) bool { return n == drained })
		if len(nodes) == 0 {
			continue
		}
		why := v.Barred
		for _, r := range v.Reasons {
			why = strings.TrimPrefix(why+", "+r.Code, ", ")
		}
		list = append(list, fmt.Sprintf("%s (%s)", strings.Join(nodes, ", "), why))
	}
	text := cmp.Or(strings.Join(list, "; "), "there is none")
	if kept {
		text += ". Room is kept first for pods that are about to be placed"
	}
	return text
}
