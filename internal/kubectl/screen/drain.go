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
	"unicode"
	"unicode/utf8"

	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// nodesWord is the label of so many nodes.
func nodesWord(nodes []string) string {
	if len(nodes) == 1 {
		return "node"
	}
	return "nodes"
}

// planOfNow says what the nodes are that a plan of a node names, and what it leaves out.
const planOfNow = "This is a plan made now: no room is reserved. It looks at volumes, node affinity and taints, not at CPU, memory and the affinity between pods. It asks no disruption budget; kubectl moorage drain %s --dry-run=server does. Without --force drain refuses pods that no controller makes again, those without volumes, too. Each pod is tried beside those above it, as if they had moved."

// mostPods is how many pods of a drain plan, and how many volumes, are printed one by one.
const mostPods = 3

// DrainPlan prints what a drain would do. Of many pods those of one workload of which the same is
// said are printed together, unless wide.
func DrainPlan(w io.Writer, s Style, x facts.DrainPlan, now time.Time, wide bool) error {
	p := &page{w: w, s: s, now: now}
	answer := green
	if !x.Clear() {
		answer = yellow
	}
	subject := "node " + x.Node
	rest, _ := strings.CutPrefix(s.Wrap(subject+": "+afterColon(x.Answer), 0), subject)
	p.printf("%s%s\n", s.paint(bold, subject), s.paint(answer, rest))
	p.do(2, x.Do)
	for _, c := range slices.Concat(x.Down, x.NotDetached) {
		p.do(2, c.Do)
	}
	groups := drainGroups(&x, wide)
	for _, pods := range groups {
		p.drainGroup(&x, pods)
	}
	if slices.ContainsFunc(x.Pods, func(pod facts.DrainPod) bool { return pod.To != "" }) {
		p.printf("\n%s\n", s.Wrap(fmt.Sprintf(planOfNow, x.Node), 0))
	}
	stuck := stuckGroups(&x, wide)
	for _, volumes := range stuck {
		p.stuckGroup(volumes)
	}
	if len(groups) < len(x.Pods) || len(stuck) < len(x.Stuck) {
		p.printf("\n")
		p.more("each pod and volume by itself")
	}
	p.unseen(x.Unseen)
	return p.err
}

// afterColon is a text that begins a sentence as it goes on after a colon.
func afterColon(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if next, _ := utf8.DecodeRuneInString(text[size:]); unicode.IsUpper(next) {
		return text // an abbreviation
	}
	return string(unicode.ToLower(first)) + text[size:]
}

// drainGroups are the pods of a plan that are printed together, in the order of their first ones.
func drainGroups(x *facts.DrainPlan, wide bool) [][]facts.DrainPod {
	var groups [][]facts.DrainPod
	places := map[string]int{}
	for i := range x.Pods {
		pod := &x.Pods[i]
		key := drainKey(pod)
		at, known := places[key]
		if !known || wide || len(x.Pods) <= mostPods {
			places[key] = len(groups)
			groups = append(groups, []facts.DrainPod{*pod})
			continue
		}
		groups[at] = append(groups[at], *pod)
	}
	return groups
}

// stuckGroups are the volumes that can't leave and are printed together: those that the same keeps.
func stuckGroups(x *facts.DrainPlan, wide bool) [][]facts.Volume {
	var groups [][]facts.Volume
	for i := range x.Stuck {
		v := &x.Stuck[i]
		same := func(group []facts.Volume) bool {
			return group[0].State == v.State && group[0].Reason.Code == v.Reason.Code
		}
		at := slices.IndexFunc(groups, same)
		if at < 0 || wide || len(x.Stuck) <= mostPods {
			groups = append(groups, []facts.Volume{*v})
			continue
		}
		groups[at] = append(groups[at], *v)
	}
	return groups
}

func (p *page) stuckGroup(volumes []facts.Volume) {
	v := &volumes[0]
	if len(volumes) == 1 {
		p.printf("\n%s  %s\n", p.s.paint(bold, "volume "+v.PersistentVolume), v.State)
		p.reasons(2, []facts.Reason{*v.Reason})
		return
	}
	p.printf("\n%s  %s\n", p.s.paint(bold, fmt.Sprintf("%d volumes", len(volumes))), v.State)
	var names []string
	for i := range volumes {
		names = append(names, cmp.Or(volumes[i].Claim, volumes[i].PersistentVolume))
	}
	p.line(2, "volumes", shorten(names))
	p.reasons(2, []facts.Reason{*v.Reason})
}

// drainKey is the same for pods of one workload of which the same is said, wherever they would go.
func drainKey(pod *facts.DrainPod) string {
	parts := []string{pod.Namespace, pod.Workload, pod.Note, fmt.Sprint(pod.Ends, pod.NotVisible, pod.To != "")}
	for _, n := range pod.Nodes {
		parts = append(parts, strings.Join(n.Nodes, " "), n.Barred)
		for _, r := range n.Reasons {
			parts = append(parts, r.Code)
		}
	}
	return strings.Join(parts, "\n")
}

// drainSign is what becomes of pods: of one, or of several that may go to different nodes.
func (p *page) drainSign(x *facts.DrainPlan, pods []facts.DrainPod) string {
	pod := &pods[0]
	to := "would go to " + destinations(pods)
	switch {
	case pod.Ends && x.Dead:
		return p.s.paint(yellow, "is not made again elsewhere")
	case pod.Ends:
		return p.s.paint(yellow, "would end")
	case pod.NotVisible:
		return p.s.paint(yellow, "? not known")
	case pod.To == "":
		return p.s.paint(red, "✗ would wait")
	case len(x.NotVisible) > 0:
		return p.s.paint(yellow, to+", by what can be seen")
	}
	return p.s.paint(green, to)
}

// destinations are the nodes to which pods would go; of several pods each with how many of them.
func destinations(pods []facts.DrainPod) string {
	if len(pods) == 1 {
		return pods[0].To
	}
	count := map[string]int{}
	for i := range pods {
		count[pods[i].To]++
	}
	var nodes []string
	for _, node := range slices.Sorted(maps.Keys(count)) {
		nodes = append(nodes, fmt.Sprintf("%s (%d)", node, count[node]))
	}
	return shorten(nodes)
}

func (p *page) drainGroup(x *facts.DrainPlan, pods []facts.DrainPod) {
	pod, sign := &pods[0], p.drainSign(x, pods)
	if len(pods) == 1 {
		p.printf("\n%s  %s\n", p.s.paint(bold, "pod "+pod.Namespace+"/"+pod.Name), sign)
		p.line(2, "volumes", strings.Join(pod.Volumes, ", "))
	} else {
		title := fmt.Sprintf("%d pods of namespace %s", len(pods), pod.Namespace)
		if pod.Workload != "" {
			title = fmt.Sprintf("%d pods of %s in namespace %s", len(pods), pod.Workload, pod.Namespace)
		}
		var names []string
		for i := range pods {
			names = append(names, pods[i].Name)
		}
		p.printf("\n%s  %s\n", p.s.paint(bold, title), sign)
		p.line(2, "pods", shorten(names))
	}
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
