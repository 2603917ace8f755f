// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"io"
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// nodesWord is the label of so many nodes.
func nodesWord(nodes []string) string {
	if len(nodes) == 1 {
		return "node"
	}
	return "nodes"
}

// planOfNow says what the nodes are that a plan names.
const planOfNow = "This is a plan made now: no room is reserved. Each pod is tried beside those above it, as if they had moved."

// DrainPlan prints what a drain would do.
func DrainPlan(w io.Writer, s Style, x facts.DrainPlan, now time.Time) error {
	p := &page{w: w, s: s, now: now}
	answer := green
	if !x.Clear() {
		answer = yellow
	}
	subject := "node " + x.Node
	rest, _ := strings.CutPrefix(s.Wrap(subject+": "+x.Answer, 0), subject)
	p.printf("%s%s\n", s.paint(bold, subject), s.paint(answer, rest))
	p.do(2, x.Do)
	for _, c := range x.Down {
		p.do(2, c.Do)
	}
	for _, pod := range x.Pods {
		sign := s.paint(green, "would go to "+pod.To)
		switch {
		case pod.Ends && x.Dead:
			sign = s.paint(yellow, "is not made again elsewhere")
		case pod.Ends:
			sign = s.paint(yellow, "would end")
		case pod.NotVisible:
			sign = s.paint(yellow, "? can't be told")
		case pod.To == "":
			sign = s.paint(red, "✗ would wait")
		case len(x.NotVisible) > 0:
			sign = s.paint(yellow, "would go to "+pod.To+", by what can be seen")
		}
		p.printf("\n%s  %s\n", s.paint(bold, "pod "+pod.Namespace+"/"+pod.Name), sign)
		p.line(2, "volumes", strings.Join(pod.Volumes, ", "))
		p.line(2, "note", pod.Note)
		for _, n := range pod.Nodes {
			p.line(2, nodesWord(n.Nodes), shorten(n.Nodes))
			if n.Barred != "" {
				p.line(2, "barred", n.Barred)
			}
			for _, r := range n.Reasons {
				p.line(2, "why", r.Code+": "+r.Message)
			}
		}
	}
	if slices.ContainsFunc(x.Pods, func(pod facts.DrainPod) bool { return pod.To != "" }) {
		p.printf("\n%s\n", s.Wrap(planOfNow, 0))
	}
	for _, v := range x.Stuck {
		p.printf("\n%s  %s\n", s.paint(bold, "volume "+v.PersistentVolume), v.State)
		p.reasons(2, []facts.Reason{*v.Reason})
	}
	p.unseen(x.Unseen)
	return p.err
}
