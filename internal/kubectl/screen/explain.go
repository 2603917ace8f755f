// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// page writes a screen for people. The first write error is kept.
type page struct {
	w   io.Writer
	s   Style
	now time.Time
	err error
	// cause has been printed: what it says is not repeated.
	cause *facts.Cause
	// done is the advice that has been printed: it is not repeated either.
	done []string
}

// do prints what to do, once.
func (p *page) do(indent int, text string) {
	if slices.ContainsFunc(p.done, func(done string) bool { return strings.Contains(done, text) }) {
		return
	}
	p.done = append(p.done, text)
	p.line(indent, "do", text)
}

// said says whether the headline has said a message already.
func (p *page) said(message string) bool {
	return p.cause != nil && message != "" && strings.Contains(p.cause.Message, strings.TrimSuffix(message, "."))
}

func (p *page) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

// line prints a label and a text that wraps beside it.
func (p *page) line(indent int, label, text string) {
	if text == "" {
		return
	}
	const labels = 9
	at := indent + labels
	wrapped := p.s.Wrap(text, at)
	p.printf("%s%s %s\n", strings.Repeat(" ", indent), p.s.paint(faint, fmt.Sprintf("%-*s", labels-1, label)), wrapped)
	p.s.LiveSaid = p.s.LiveSaid || strings.HasSuffix(p.s.Linked(text), "\n"+LiveNote)
}

// headline prints the answer, and what to do about its cause: all that most
// readers need.
func (p *page) headline(subject, answer string, c *facts.Cause) {
	paint, about := green, ""
	if c != nil {
		paint, about = yellow, " ("+c.Code+p.since(c.Since)+")"
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

// Pod prints why a pod runs or does not: the answer, and with wide all that is
// known of its volumes and nodes.
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

// more says what is not shown.
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
	p.told(x.Told)
}

func (p *page) podVolume(v facts.PodVolume) {
	p.printf("\n%s  %s\n", p.s.paint(bold, "volume "+v.Name), identity(v.Volume))
	p.volume(v.Volume, v.SafeToMount)
	p.reasons(2, v.Reasons)
}

// identity names a volume in full.
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
			who = "for " + all(v.Holder.For)
		}
		p.line(2, "holder", v.Holder.Node+p.since(v.Holder.Since)+", "+who)
	}
	for _, nv := range v.Nodes {
		p.nodeVolume(v, nv)
	}
	for i := range v.NodesSay {
		p.line(2, "itself", v.NodesSay[i].Node+" says that it is "+v.NodesSay[i].Kind())
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

// held says whether the line of the holder's own node says it all.
func held(v facts.Volume) bool {
	return len(v.Holder.For) > 0 && slices.ContainsFunc(v.Nodes, func(nv facts.NodeVolume) bool { return nv.Node == v.Holder.Node })
}

func (p *page) nodeVolume(v facts.Volume, nv facts.NodeVolume) {
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

func (p *page) waits(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return ", waits " + ago(p.now, t)
}

func (p *page) reasons(indent int, reasons []facts.Reason) {
	for _, r := range reasons {
		since := ""
		if !r.Since.IsZero() {
			since = " for " + ago(p.now, r.Since)
		}
		p.printf("%s%s\n", strings.Repeat(" ", indent), p.s.paint(red, "✗ "+r.Code+since))
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
		p.line(2, fmt.Sprint(len(n.Nodes)), shorten(n.Nodes))
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

// shorten names the first few of many nodes.
func shorten(nodes []string) string {
	const few = 6
	if len(nodes) <= few {
		return strings.Join(nodes, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(nodes[:few], ", "), len(nodes)-few)
}

func (p *page) told(list []facts.Told) {
	list = slices.DeleteFunc(slices.Clone(list), func(t facts.Told) bool { return p.said(t.Message) })
	if len(list) == 0 {
		return
	}
	p.printf("\n%s\n", p.s.paint(bold, "the pod's conditions"))
	for _, t := range list {
		p.printf("  %s\n", p.s.paint(faint, fmt.Sprintf("%s=False %s%s", t.By, t.Reason, p.since(t.Since))))
		p.line(2, "", t.Message)
	}
}

// Words says in one line that what nodes have themselves can't be seen, where that is so.
func Words(w io.Writer, s Style, unseen *facts.Unseen) error {
	p := &page{w: w, s: s}
	if unseen != nil {
		p.unseen([]facts.Unseen{*unseen})
	}
	return p.err
}

// Down prints that components are down, as explain does of what waits for them.
func Down(w io.Writer, s Style, list []facts.Cause, now time.Time) error {
	p := &page{w: w, s: s, now: now}
	for i := range list {
		c := &list[i]
		p.printf("%s\n", p.s.paint(yellow, p.s.Wrap(c.Message+" ("+c.Code+p.since(c.Since)+")", 0)))
		p.do(2, c.Do)
	}
	return p.err
}

// Unseen says what could not be read, and which right is missing. It is for
// the error stream where the output is a table.
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
	switch {
	case stock(missing):
		p.printf("%s\n", p.s.Wrap("Moorage is not installed in this cluster: what is shown is what Kubernetes does by itself.", 0))
	case len(missing) > 0:
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

// stock says whether what a cluster does not serve is all that Moorage adds to one.
func stock(missing []string) bool {
	own := 0
	for _, resource := range missing {
		if strings.HasSuffix(resource, "."+v1alpha1.GroupName) {
			own++
		}
	}
	return own == len(missing) && own == len(facts.OwnResources())
}

func all(list []facts.Requester) string {
	var parts []string
	for _, r := range list {
		parts = append(parts, r.String())
	}
	return strings.Join(parts, ", ")
}
