// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// page keeps the first write error.
type page struct {
	w   io.Writer
	s   Style
	now time.Time
	err error
	// cause is printed already.
	cause *facts.Reason
	// done is advice that is printed already.
	done []string
}

func (p *page) do(indent int, text string) {
	if slices.ContainsFunc(p.done, func(done string) bool { return strings.Contains(done, text) }) {
		return
	}
	p.done = append(p.done, text)
	p.line(indent, "do", text)
}

func (p *page) said(message string) bool {
	return p.cause != nil && message != "" && strings.Contains(p.cause.Message, strings.TrimSuffix(message, "."))
}

func (p *page) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

func (p *page) line(indent int, label, text string) {
	if text == "" {
		return
	}
	const labels = 9
	at := indent + labels
	p.printf("%s%s %s\n", strings.Repeat(" ", indent), p.s.paint(faint, fmt.Sprintf("%-*s", labels-1, label)), p.s.Wrap(text, at))
}

// headline prints the answer and the advice on its cause.
func (p *page) headline(subject, answer string, c *facts.Reason) {
	paint, about := green, ""
	if c != nil {
		paint, about = yellow, " ("+c.Code+p.since(c.Since)+p.tried(c.Tried)+")"
	}
	text := p.s.Wrap(subject+" "+answer+about, 0)
	if rest, ok := strings.CutPrefix(text, subject); ok {
		text = p.s.paint(bold, subject) + p.s.paint(paint, rest)
	}
	p.printf("%s\n", text)
	if c != nil {
		p.do(2, c.Do)
	}
}

// Pod prints the answer; with wide, all facts about volumes and nodes.
func Pod(w io.Writer, s Style, x facts.Pod, now time.Time, wide bool) error {
	p := &page{w: w, s: s, now: now, cause: x.Cause}
	p.headline("pod "+x.Namespace+"/"+x.Name, x.Answer, x.Cause)
	if wide || x.Cause == nil || x.Cause.Of == facts.OfVolume {
		p.line(2, "note", x.Note)
	}
	switch {
	case wide:
		p.podDetails(x)
	case len(x.Volumes) > 0:
		p.more("its volumes, who has them and who waits")
	case len(x.Nodes) > 0:
		p.more("what each node says")
	}
	p.unseen(x.Unseen)
	return p.err
}

func (p *page) more(what string) {
	p.printf("  %s\n", p.s.paint(faint, "-o wide shows "+what))
}

func (p *page) podDetails(x facts.Pod) {
	where := "no node"
	if x.Node != "" {
		where = "at " + x.Node
	}
	p.line(2, "pod", fmt.Sprintf("%s, %s, scheduler %s, age %s", x.Phase, where, x.Scheduler, ago(p.now, x.Created)))
	if x.Cause != nil {
		p.line(2, "changes", x.Cause.Changes)
	}
	for _, v := range x.Volumes {
		p.podVolume(v)
	}
	p.nodes(x.Nodes)
}

func (p *page) podVolume(v facts.PodVolume) {
	p.printf("\n%s  %s\n", p.s.paint(bold, "volume "+v.Name), identity(v.Volume))
	p.volume(v.Volume, v.SafeToMount)
	p.reasons(2, v.Reasons)
}

func identity(v facts.Volume) string {
	var parts []string
	if v.PersistentVolume != "" {
		parts = append(parts, v.PersistentVolume)
	}
	if v.Driver != "" {
		parts = append(parts, v.Driver)
	}
	return strings.Join(append(parts, "serves "+v.Access), ", ")
}

func (p *page) volume(v facts.Volume, safe bool) {
	state := v.State
	if safe {
		state += ", safe to mount"
	}
	p.line(2, "state", state)
	if v.Holder != nil && !held(v) {
		who := "no pod uses it"
		if len(v.Holder.For) > 0 {
			who = "for " + facts.Names(v.Holder.For)
		}
		p.line(2, "holder", v.Holder.Node+p.since(v.Holder.Since)+", "+who)
	}
	for _, nv := range v.Nodes {
		p.volumeOnNode(v, nv)
	}
	for i := range v.NodesSay {
		p.line(2, "itself", v.NodesSay[i].Node+" says: "+v.NodesSay[i].Oddity())
	}
	if v.Next != nil {
		p.line(2, "next", fmt.Sprintf("%s %s%s", v.Next.Who, facts.AtNode(v.Next.Node), p.waits(v.Next.Since)))
	}
	for _, waiter := range v.Waiting {
		where := ", without a node"
		if waiter.Node != "" {
			where = " " + facts.AtNode(waiter.Node)
		}
		p.line(2, "waiting", waiter.Who.String()+where+p.waits(waiter.Since))
	}
}

func held(v facts.Volume) bool {
	return len(v.Holder.For) > 0 && slices.ContainsFunc(v.Nodes, func(nv facts.VolumeOnNode) bool { return nv.Node == v.Holder.Node })
}

func (p *page) volumeOnNode(v facts.Volume, nv facts.VolumeOnNode) {
	text := nv.Node + ": " + nv.State + p.since(nv.Since)
	if v.Holder != nil && v.Holder.Node == nv.Node {
		text = nv.Node + " (holder): " + nv.State + p.since(nv.Since)
	}
	var users []string
	for _, u := range nv.Users {
		users = append(users, fmt.Sprintf("%s (%s)", u.Requester, strings.ToLower(u.State)))
	}
	if len(users) > 0 {
		text += ", " + strings.Join(users, ", ")
	}
	if nv.Error != "" {
		text += "; the driver says: " + nv.Error
	}
	p.line(2, "at", text)
}

func (p *page) since(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return " for " + ago(p.now, t)
}

func (p *page) tried(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return ", tried last " + ago(p.now, t) + " ago"
}

func (p *page) waits(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return ", waits " + ago(p.now, t)
}

func (p *page) reasons(indent int, reasons []facts.Reason) {
	for _, r := range reasons {
		p.printf("%s%s\n", strings.Repeat(" ", indent), p.s.paint(red, "✗ "+r.Code+p.since(r.Since)+p.tried(r.Tried)))
		if p.said(r.Message) {
			continue
		}
		p.line(indent+2, "why", r.Message)
		p.line(indent+2, "changes", r.Changes)
		p.do(indent+2, r.Do)
	}
}

func (p *page) nodes(list []facts.NodesVerdict) {
	if len(list) == 0 {
		return
	}
	p.printf("\n%s\n", p.s.paint(bold, "nodes"))
	for _, n := range list {
		p.line(2, fmt.Sprint(len(n.Nodes)), facts.Some(n.Nodes, few))
		if n.Barred != "" {
			p.line(2, "barred", n.Barred)
			continue
		}
		if n.Fits {
			p.printf("  %s\n", p.s.paint(green, "✓ could take its volumes"))
		}
		p.reasons(2, n.Reasons)
	}
}

const few = 6

// Down prints the down components like explain.
func Down(w io.Writer, s Style, list []facts.Reason, now time.Time) error {
	p := &page{w: w, s: s, now: now}
	for i := range list {
		c := &list[i]
		p.printf("%s\n", p.s.paint(yellow, p.s.Wrap(c.Message+" ("+c.Code+p.since(c.Since)+")", 0)))
		p.do(2, c.Do)
	}
	return p.err
}

// Unseen names the unread kinds and missing rights; beside a table, on the error stream.
func Unseen(w io.Writer, s Style, list []facts.Unseen) error {
	p := &page{w: w, s: s}
	p.unseen(list)
	return p.err
}

func (p *page) unseen(list []facts.Unseen) {
	if p.s.UnseenSaid {
		return
	}
	var missing, nowhere, partly []string
	say := func(format string, args ...any) {
		const label = "not seen: "
		p.printf("%s%s\n", p.s.paint(yellow, label), p.s.Wrap(fmt.Sprintf(format, args...), len(label)))
	}
	namespace := ""
	for _, u := range list {
		switch {
		case u.Missing:
			missing = append(missing, u.Resource)
		case u.Failed:
			say("%s: %s", u.Resource, u.Message)
		case u.Namespace != "":
			partly, namespace = append(partly, u.Resource), u.Namespace
		default:
			nowhere = append(nowhere, u.Resource)
		}
	}
	if len(missing) > 0 && !stock(missing) { // version and doctor report that
		say("%s: the cluster does not serve them. Are Moorage's CRDs installed?", strings.Join(missing, ", "))
	}
	var lacking []string
	if len(nowhere) > 0 {
		lacking = append(lacking, strings.Join(nowhere, ", "))
	}
	if len(partly) > 0 {
		lacking = append(lacking, strings.Join(partly, ", ")+" outside namespace "+namespace)
	}
	if len(lacking) > 0 {
		say("%s: you lack the right to list them (docs/kubectl.md has the rights to ask for).", strings.Join(lacking, "; "))
	}
}

func stock(missing []string) bool {
	own := 0
	for _, resource := range missing {
		if strings.HasSuffix(resource, "."+v1alpha1.GroupName) {
			own++
		}
	}
	return own == len(missing) && own == len(facts.OwnResources())
}

// Storage prints where a claim's or PersistentVolume's volume is.
func Storage(w io.Writer, s Style, kind string, x facts.Storage, now time.Time, wide bool) error {
	p := &page{w: w, s: s, now: now, cause: x.Cause}
	name := x.Name
	if x.Namespace != "" {
		name = x.Namespace + "/" + x.Name
	}
	p.headline(kind+" "+name, x.Answer, x.Cause)
	if x.Volume != nil && !wide {
		for i := range x.Volume.NodesSay {
			p.line(2, "itself", x.Volume.NodesSay[i].Node+" says: "+x.Volume.NodesSay[i].Oddity())
		}
	}
	if wide {
		p.storageDetails(x)
	} else if x.Volume != nil || len(x.Pods) > 0 {
		p.more("each node and pod")
	}
	p.unseen(x.Unseen)
	return p.err
}

func (p *page) storageDetails(x facts.Storage) {
	if x.Cause != nil {
		p.line(2, "changes", x.Cause.Changes)
	}
	if x.Volume != nil {
		p.printf("\n%s  %s\n", p.s.paint(bold, "volume "+x.Volume.Handle), identity(*x.Volume))
		p.volume(*x.Volume, false)
	}
	if len(x.Pods) > 0 {
		p.printf("\n")
	}
	for _, pod := range x.Pods {
		p.printf("%s\n", p.s.Wrap(p.podLine(pod), 2))
	}
}

func (p *page) podLine(pod facts.PodNeed) string {
	switch {
	case pod.Cause == nil:
		return pod.Who.String() + " " + pod.Answer
	case p.cause != nil && (p.said(pod.Cause.Message) || p.cause.Code == pod.Cause.Code):
		where := ""
		if pod.Node != "" {
			where = " at " + pod.Node
		}
		return fmt.Sprintf("%s%s waits for that%s", pod.Who, where, p.since(pod.Since))
	}
	return fmt.Sprintf("%s %s (%s%s)", pod.Who, pod.Answer, pod.Cause.Code, p.since(pod.Cause.Since))
}

// Workload prints why the pods of a workload do not run.
func Workload(w io.Writer, s Style, x facts.Workload, now time.Time, wide bool) error {
	p := &page{w: w, s: s, now: now, cause: x.Cause}
	p.headline(strings.ToLower(x.Kind)+" "+x.Namespace+"/"+x.Name+":", x.Answer, x.Cause)
	for i, g := range x.Groups {
		if i > 0 || wide {
			p.line(2, "pods", facts.Some(g.Pods, few)+": "+g.Cause.Code+p.since(g.Cause.Since))
		}
		if !p.said(g.Cause.Message) {
			p.line(4, "why", g.Cause.Message)
			p.do(4, g.Cause.Do)
		}
	}
	if len(x.Groups) > 0 {
		p.line(2, "more", fmt.Sprintf("`kubectl moorage explain pod/%s -n %s`", x.Groups[0].Pods[0], x.Namespace))
	}
	p.unseen(x.Unseen)
	return p.err
}

// Node prints how a node serves its volumes.
func Node(w io.Writer, s Style, x facts.NodeView, now time.Time, wide bool) error {
	p := &page{w: w, s: s, now: now, cause: x.Cause}
	p.headline("node "+x.Node, x.Answer, x.Cause)
	for _, v := range x.Kept {
		text := v.Claim
		if text == "" {
			text = v.PersistentVolume
		}
		text += ": " + v.Reason.Code + p.since(v.Reason.Since)
		if v.Next != nil {
			text += ", next " + v.Next.Who.String() + " " + facts.AtNode(v.Next.Node)
		}
		p.line(2, "volume", text)
	}
	p.waitersOfNode(x.Waiting, wide)
	if x.Fenced > 0 {
		p.line(2, "fenced", facts.Count(x.Fenced, "volume")+" may still be mounted there since a forced detach")
	}
	if x.Word != nil {
		for i := range x.Word.Has {
			p.line(2, "itself", x.Word.Has[i].Words())
		}
		if wide || x.Word.State != facts.WordAbsent {
			p.line(2, "word", x.Word.Note)
		}
	}
	if !wide {
		p.more("its slots; drain-plan " + x.Node + " says what a drain would do")
	}
	for i := range x.Slots {
		if wide {
			p.slots(&x.Slots[i])
		}
	}
	p.unseen(x.Unseen)
	return p.err
}

// fewWaiters applies without wide.
const fewWaiters = 3

func (p *page) waitersOfNode(list []facts.Wait, wide bool) {
	for i, waiter := range list {
		if i == fewWaiters && !wide && len(list) > fewWaiters+1 {
			p.line(2, "waits", number(len(list)-fewWaiters)+" more")
			return
		}
		p.line(2, "waits", waiter.Who.String()+": "+waiter.Code+p.since(waiter.Since))
	}
}

func (p *page) slots(x *facts.Slots) {
	limit := "no limit"
	if x.Limit != nil {
		limit = fmt.Sprintf("limit %d", *x.Limit)
	}
	unknown := ""
	if x.Unknown > 0 {
		unknown = fmt.Sprintf("%d unknown, ", x.Unknown)
	}
	p.line(2, "slots", fmt.Sprintf("%s: %d used, %d kept, %d leaving, %s%d reserved, %s", x.Driver, x.Used, x.Kept, x.Leaving, unknown, x.Reserved, limit))
	for _, v := range x.Volumes {
		text := cmp.Or(v.Claim, v.Volume)
		for i, u := range v.Users {
			if i == 0 {
				text += ", for "
			} else {
				text += ", "
			}
			text += u.Requester.String()
		}
		p.line(4, strings.ToLower(v.Slot), text)
	}
}

// Ticket prints a ticket's wait or its volumes, and its end.
func Ticket(w io.Writer, s Style, x facts.TicketExplanation, now time.Time, wide bool) error {
	p := &page{w: w, s: s, now: now, cause: x.Cause}
	p.headline("ticket "+x.Namespace+"/"+x.Name, x.Answer, x.Cause)
	if x.Operation != "" {
		p.line(2, "for", fmt.Sprintf("the %s of %s: Moorage has made it, as an AttachPolicy says (attachFor, detachFor)", strings.ToLower(x.Operation), x.OperationOf))
	}
	p.line(2, "ends", x.Ends())
	if !wide {
		p.more("its type, its volumes and every reason")
		return p.err
	}
	yields := "keeps what it has been granted"
	if x.Yields {
		yields = "gives its volumes up to pods, and to tickets of their priority or higher"
	}
	where := "at " + x.Node
	switch {
	case x.Detached:
		where = "at no node (detached)"
	case x.Wherever && x.Node == "":
		where = "at no node yet: Moorage chooses it (wherever)"
	case x.Wherever:
		where += ", which Moorage has chosen (wherever)"
	}
	p.line(2, "ticket", fmt.Sprintf("%s, priority %d, %s, %s, age %s", x.Type, x.Priority, yields, where, ago(p.now, x.Created)))
	p.line(2, "volumes", strings.Join(x.Volumes, ", "))
	p.line(2, "attached", parameters(x.Parameters))
	if x.Interruptions > 0 {
		p.line(2, "lost", fmt.Sprintf("its volumes %s in a row: each time it is granted again after a longer pause, 5 minutes at most", facts.Count(int(x.Interruptions), "time")))
	}
	if x.Cause != nil {
		p.line(2, "changes", x.Cause.Changes)
	}
	if len(x.Reasons) > 1 {
		p.reasons(2, x.Reasons[1:])
	}
	return p.err
}

func parameters(of map[string]string) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(of)) {
		list = append(list, key+"="+of[key])
	}
	if len(list) == 0 {
		return ""
	}
	return "with parameters " + strings.Join(list, ", ")
}

// planOfNow explains the plan's nodes and its limits.
const planOfNow = "No room is reserved. %sWithout --force drain refuses pods that no controller makes again, those without volumes, too. Each pod is tried beside those above it, as if they had moved."

// DrainPlan prints a line for each pod; with wide, each node's verdict.
func DrainPlan(w io.Writer, s Style, x facts.DrainPlan, now time.Time, wide bool) error {
	p := &page{w: w, s: s, now: now}
	answer := green
	if !x.Clear() {
		answer = yellow
	}
	subject := "node " + x.Node
	told := strings.ToLower(x.Answer[:min(1, len(x.Answer))]) + x.Answer[min(1, len(x.Answer)):] // mid-line
	rest, _ := strings.CutPrefix(s.Wrap(subject+": "+told, 0), subject)
	p.printf("%s%s\n", s.paint(bold, subject), s.paint(answer, rest))
	p.do(2, x.Do)
	for _, c := range x.Down {
		p.do(2, c.Do)
	}
	if !x.Dead {
		p.line(2, "note", "This plan is made now. It ignores CPU, memory and the affinity between pods")
	}
	for i := range x.Pods {
		p.drainPod(&x, &x.Pods[i], wide)
	}
	if slices.ContainsFunc(x.Pods, func(pod facts.DrainPod) bool { return pod.To != "" }) {
		budgets := ""
		if !x.AsksBudgets {
			budgets = fmt.Sprintf("It asks no disruption budget; to do so: `kubectl moorage drain %s --dry-run=server`. ", x.Node)
		}
		p.printf("\n%s\n", s.Wrap(fmt.Sprintf(planOfNow, budgets), 0))
	}
	for _, v := range x.Stuck {
		p.printf("\n%s  %s\n", p.s.paint(bold, "volume "+v.PersistentVolume), v.State)
		p.reasons(2, []facts.Reason{*v.Reason})
	}
	if !wide && x.Waits > 0 {
		p.printf("\n")
		p.more("what each node says")
	}
	p.unseen(x.Unseen)
	return p.err
}

func (p *page) drainPod(x *facts.DrainPlan, pod *facts.DrainPod, wide bool) {
	sign := p.s.paint(green, "would go to "+pod.To)
	switch {
	case pod.Ends:
		sign = p.s.paint(yellow, "would end")
	case pod.NotVisible:
		sign = p.s.paint(yellow, "? not known")
	case pod.To == "":
		sign = p.s.paint(red, "✗ would wait")
	case len(x.NotVisible) > 0:
		sign = p.s.paint(yellow, "would go to "+pod.To+", by what can be seen")
	}
	p.printf("\n%s  %s\n", p.s.paint(bold, "pod "+pod.Namespace+"/"+pod.Name), sign)
	p.line(2, "volumes", strings.Join(pod.Volumes, ", "))
	p.line(2, "note", pod.Note)
	if wide {
		p.nodes(pod.Nodes)
		return
	}
	for _, n := range pod.Nodes {
		why := []string{n.Barred}
		for _, r := range n.Reasons {
			why = append(why, r.Message)
		}
		p.line(2, "why", facts.Some(n.Nodes, few)+": "+strings.TrimPrefix(strings.Join(why, "; "), "; "))
	}
}

// Finding is a finding of doctor.
type Finding struct {
	Sign                          string
	Good, Bad                     bool
	Check, Message, Evidence, Fix string
}

// Findings prints findings; it only counts the good ones unless all are asked for.
func Findings(w io.Writer, s Style, list []Finding, all bool) error {
	p := &page{w: w, s: s}
	good := 0
	for _, f := range list {
		if f.Good {
			good++
			if !all {
				continue
			}
		}
		c := yellow
		switch {
		case f.Good:
			c = green
		case f.Bad:
			c = red
		}
		const label = 17
		p.printf("%s %s\n", s.paint(c, fmt.Sprintf("%s %-*s", f.Sign, label-3, f.Check)), s.Wrap(f.Message, label))
		p.line(2, "evidence", f.Evidence)
		p.line(2, "fix", f.Fix)
	}
	p.printf("%s\n", s.paint(faint, number(good)+" of "+number(len(list))+" are as they should be"))
	return p.err
}
