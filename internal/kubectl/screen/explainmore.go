// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

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
			if has := &x.Volume.NodesSay[i]; has.Odd() && !has.ToldBy(x.Cause) {
				p.line(2, "itself", has.Node+" says: "+has.Oddity())
			}
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

// podLine is what a pod that uses a claim does, and why not.
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

// Workload prints what keeps the pods of a workload.
func Workload(w io.Writer, s Style, x facts.Workload, now time.Time, wide bool) error {
	p := &page{w: w, s: s, now: now, cause: x.Cause}
	p.headline(strings.ToLower(x.Kind)+" "+x.Namespace+"/"+x.Name+":", x.Answer, x.Cause)
	for i, g := range x.Groups {
		if i > 0 || wide {
			p.line(2, "pods", shorten(g.Pods)+": "+g.Cause.Code+p.since(g.Cause.Since))
		}
		if !p.said(g.Cause.Message) {
			p.line(4, "why", g.Cause.Message)
			p.do(4, g.Cause.Do)
		}
	}
	if len(x.Groups) > 0 {
		p.printf("  %s\n", p.s.paint(faint, p.s.Linked(fmt.Sprintf("kubectl moorage explain pod/%s -n %s has more", x.Groups[0].Pods[0], x.Namespace))))
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
	for _, f := range x.Fenced {
		p.line(2, "fenced", fencedSince(p, &f))
	}
	if x.TimeHeld != "" {
		p.line(2, "held", "afterUnreachable takes nothing while "+x.TimeHeld+" can't be reached")
	}
	p.nodeWord(x.Word, wide)
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

// fewWaiters is how many are named of those that wait for a node, where not all are asked for.
const fewWaiters = 3

// waitersOfNode names who waits for a node, and for what.
func (p *page) waitersOfNode(list []facts.NodeWaiter, wide bool) {
	for i, waiter := range list {
		if i == fewWaiters && !wide && len(list) > fewWaiters+1 {
			p.line(2, "waits", number(len(list)-fewWaiters)+" more")
			return
		}
		p.line(2, "waits", waiter.Who.String()+": "+waiter.Code+p.since(waiter.Since))
	}
}

// slots counts a driver's slots at a node, and says what takes each.
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

func fencedSince(p *page, f *facts.Fenced) string {
	if f.Since.IsZero() {
		return f.Words()
	}
	return f.Words() + "; the first of them " + ago(p.now, f.Since) + " ago"
}

// nodeWord prints what moorage-node says of a node. That it does not run there is worth a
// line for who wants to know all.
func (p *page) nodeWord(word *facts.NodeWord, wide bool) {
	if word == nil {
		return
	}
	for i := range word.Has {
		// A cause is about one volume only.
		if has := &word.Has[i]; !has.ToldBy(p.cause) || wide || len(word.Has) > 1 {
			p.line(2, "itself", has.Words())
		}
	}
	if wide || word.State != facts.WordAbsent {
		p.line(2, "word", word.Note)
	}
	if !wide || word.State == facts.WordAbsent || word.State == facts.WordUnseen {
		return
	}
	for _, unread := range word.Unread {
		p.line(2, "unread", unread)
	}
	p.line(2, "devices", "not known: moorage-node sees what is staged and mounted, and not which other devices the machine has")
}
