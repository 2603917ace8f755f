// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// page writes a screen for people. The first write error is kept.
type page struct {
	w   io.Writer
	s   Style
	now time.Time
	err error
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
	p.printf("%s%s %s\n", strings.Repeat(" ", indent), p.s.paint(faint, fmt.Sprintf("%-*s", labels-1, label)), p.s.wrap(text, at))
}

// Pod prints why a pod runs or does not.
func Pod(w io.Writer, s Style, x facts.Pod, now time.Time) error {
	p := &page{w: w, s: s, now: now}
	where := "no node"
	switch {
	case x.Node != "":
		where = "at " + x.Node
	case x.Reserved != "":
		where = "no node yet, " + x.Reserved + " reserved"
	}
	p.printf("%s  %s, %s, scheduler %s, age %s\n", p.s.paint(bold, "pod "+x.Namespace+"/"+x.Name), x.Phase, where, x.Scheduler, ago(now, x.Created))
	p.printf("%s\n", p.s.paint(answerColour(x.State), p.s.wrap(x.Answer, 0)))
	if x.Note != "" {
		p.printf("%s\n", p.s.wrap(x.Note, 0))
	}
	for _, v := range x.Volumes {
		p.podVolume(v)
	}
	p.nodes(x.Nodes)
	p.told(x.Told)
	p.unseen(x.Unseen)
	return p.err
}

func answerColour(state string) colour {
	switch state {
	case facts.PodReady, facts.PodNoVolumes, facts.PodFinished:
		return green
	}
	return yellow
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
		text := v.Holder.Node + p.since(v.Holder.Since) + ", for "
		if len(v.Holder.For) > 0 {
			text += all(v.Holder.For)
		} else {
			text += "nobody any more"
		}
		p.line(2, "holder", text)
	}
	for _, place := range v.Places {
		p.place(v, place)
	}
	if v.Next != nil {
		p.line(2, "next", fmt.Sprintf("%s at %s%s", v.Next.Who, v.Next.Node, p.waits(v.Next.Since)))
	}
	for _, waiter := range v.Waiting {
		where := ", without a node"
		if waiter.Node != "" {
			where = " at " + waiter.Node
		}
		p.line(2, "waiting", waiter.Who.String()+where+p.waits(waiter.Since))
	}
}

// held says whether the line of the holder's own place says it all.
func held(v facts.Volume) bool {
	return len(v.Holder.For) > 0 && slices.ContainsFunc(v.Places, func(place facts.Place) bool { return place.Node == v.Holder.Node })
}

func (p *page) place(v facts.Volume, place facts.Place) {
	text := place.Node + ": " + place.State + p.since(place.Since)
	if v.Holder != nil && v.Holder.Node == place.Node {
		text = place.Node + " (holder): " + place.State + p.since(place.Since)
	}
	var users []string
	for _, u := range place.Users {
		users = append(users, fmt.Sprintf("%s (%s)", u.Requester, strings.ToLower(u.State)))
	}
	if len(users) > 0 {
		text += ", " + strings.Join(users, ", ")
	}
	if place.Error != "" {
		text += "; the driver says: " + place.Error
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
		p.line(indent+2, "why", r.Message)
		p.line(indent+2, "changes", r.Changes)
		p.line(indent+2, "do", r.Do)
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
			p.line(2, "no choice", n.Barred)
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
	if len(list) == 0 {
		return
	}
	p.printf("\n%s\n", p.s.paint(bold, "the pod's conditions"))
	for _, t := range list {
		p.printf("  %s\n", p.s.paint(faint, fmt.Sprintf("%s=False %s%s", t.By, t.Reason, p.since(t.Since))))
		p.line(2, "", t.Message)
	}
}

// Unseen says what could not be read, and which right is missing. It is for
// the error stream where the output is a table.
func Unseen(w io.Writer, s Style, list []facts.Unseen) error {
	p := &page{w: w, s: s}
	p.unseen(list)
	return p.err
}

func (p *page) unseen(list []facts.Unseen) {
	var missing, nowhere, partly []string
	namespace := ""
	for _, u := range list {
		switch {
		case u.Missing:
			missing = append(missing, u.Resource)
		case u.Namespace != "":
			partly, namespace = append(partly, u.Resource), u.Namespace
		default:
			nowhere = append(nowhere, u.Resource)
		}
	}
	say := func(format string, args ...any) {
		const label = "not seen: "
		p.printf("%s%s\n", p.s.paint(yellow, label), p.s.wrap(fmt.Sprintf(format, args...), len(label)))
	}
	if len(missing) > 0 {
		say("%s: the cluster does not serve them. Are Moorage's CRDs installed?", strings.Join(missing, ", "))
	}
	if len(partly) > 0 {
		say("%s outside namespace %s: you lack the right to list them in all namespaces.", strings.Join(partly, ", "), namespace)
	}
	if len(nowhere) > 0 {
		say("%s: you lack the right to list them.", strings.Join(nowhere, ", "))
	}
	if len(partly)+len(nowhere) > 0 {
		say("What follows from them is not shown. docs/kubectl.md has a ClusterRole with the rights to read.")
	}
}

func all(list []facts.Requester) string {
	var parts []string
	for _, r := range list {
		parts = append(parts, r.String())
	}
	return strings.Join(parts, ", ")
}

// Storage prints where a claim's or PersistentVolume's volume is.
func Storage(w io.Writer, s Style, kind string, x facts.Storage, now time.Time) error {
	p := &page{w: w, s: s, now: now}
	name := x.Name
	if x.Namespace != "" {
		name = x.Namespace + "/" + x.Name
	}
	p.printf("%s  %s\n", p.s.paint(bold, kind+" "+name), x.Phase)
	p.printf("%s\n", p.s.wrap(x.Answer, 0))
	p.reasons(2, x.Reasons)
	if x.Volume != nil {
		p.printf("\n%s  %s\n", p.s.paint(bold, "volume "+x.Volume.Handle), identity(*x.Volume))
		p.volume(*x.Volume, false)
		if x.Volume.Reason != nil {
			p.reasons(2, []facts.Reason{*x.Volume.Reason})
		}
	}
	for _, pod := range x.Pods {
		where := "no node"
		if pod.Node != "" {
			where = "at " + pod.Node
		}
		p.printf("\n%s  %s\n", p.s.paint(bold, pod.Who.String()), where)
		p.line(2, "", pod.Answer)
		p.reasons(2, pod.Reasons)
	}
	p.unseen(x.Unseen)
	return p.err
}
