// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

type belief int

const (
	gone  belief = iota // certainly not there
	doubt               // may be there
	sure                // certainly there
)

// careful is a correct caller for exclusive volumes, by the CSI specification and without a look at the
// judge. Calls fail, time out, take effect unheard and lie.
type careful struct {
	seq     uint64
	judge   *Judge
	slots   int
	volumes []string
	nodes   []string
	at      map[[2]string]belief // volume, node
	staged  map[[2]string]belief
	mounted map[[2]string]belief
	open    []diskapi.Entry // arrivals that have not returned
}

func newCareful(t *rapid.T) *careful {
	c := &careful{
		judge: New(), slots: rapid.IntRange(1, 2).Draw(t, "slots"),
		volumes: []string{"v", "w", "x"}, nodes: []string{"a", "b"},
		at: map[[2]string]belief{}, staged: map[[2]string]belief{}, mounted: map[[2]string]belief{},
	}
	for _, n := range c.nodes {
		c.observe(diskapi.Entry{Phase: diskapi.Returned, Call: diskapi.NodeGetInfo, Node: n, Outcome: diskapi.OK, Args: diskapi.Args{Slots: c.slots}})
	}
	return c
}

func (c *careful) observe(e diskapi.Entry) diskapi.Entry {
	c.seq++
	e.Seq = c.seq
	if e.ID == 0 {
		e.ID = c.seq
	}
	c.judge.Observe(e)
	return e
}

// busy means any node if node is empty.
func (c *careful) busy(volume, node string, calls ...diskapi.Call) bool {
	return slices.ContainsFunc(c.open, func(e diskapi.Entry) bool {
		return e.Volume == volume && (node == "" || e.Node == node) && slices.Contains(calls, e.Call)
	})
}

// With idle the list also has calls that give back what is gone: they are many and change nothing.
func (c *careful) legal(idle bool) []diskapi.Entry {
	var out []diskapi.Entry
	for _, v := range c.volumes {
		everywhereGone := !c.busy(v, "", diskapi.ControllerPublish, diskapi.ControllerUnpublish, diskapi.DeleteVolume)
		for _, n := range c.nodes {
			everywhereGone = everywhereGone && c.at[[2]string{v, n}] == gone
			for _, call := range []diskapi.Call{
				diskapi.ControllerPublish, diskapi.ControllerUnpublish,
				diskapi.NodeStage, diskapi.NodeUnstage, diskapi.NodePublish, diskapi.NodeUnpublish,
			} {
				if c.may(call, v, n) && (idle || c.useful(call, v, n)) {
					out = append(out, diskapi.Entry{Call: call, Volume: v, Node: n})
				}
			}
		}
		if everywhereGone && idle {
			out = append(out, diskapi.Entry{Call: diskapi.DeleteVolume, Volume: v})
		}
	}
	return out
}

func (c *careful) may(call diskapi.Call, v, n string) bool {
	here := [2]string{v, n}
	switch call {
	case diskapi.ControllerPublish:
		return !c.busy(v, "", diskapi.ControllerPublish, diskapi.ControllerUnpublish, diskapi.DeleteVolume) &&
			c.at[[2]string{v, c.other(n)}] == gone && (c.at[here] != gone || c.used(n) < c.slots)
	case diskapi.ControllerUnpublish:
		return !c.busy(v, "", diskapi.ControllerPublish, diskapi.ControllerUnpublish, diskapi.DeleteVolume) &&
			!c.busy(v, n, diskapi.NodeStage, diskapi.NodeUnstage, diskapi.NodePublish, diskapi.NodeUnpublish) &&
			c.staged[here] == gone && c.mounted[here] == gone
	}
	if c.busy(v, n, diskapi.NodeStage, diskapi.NodeUnstage, diskapi.NodePublish, diskapi.NodeUnpublish) {
		return false
	}
	switch call {
	case diskapi.NodeStage:
		return c.at[here] == sure
	case diskapi.NodeUnstage:
		return c.mounted[here] == gone
	case diskapi.NodePublish:
		return c.staged[here] == sure && c.at[here] == sure
	default:
		return true
	}
}

func (c *careful) useful(call diskapi.Call, v, n string) bool {
	b := c.beliefs(call)[[2]string{v, n}]
	switch call {
	case diskapi.ControllerPublish, diskapi.NodeStage, diskapi.NodePublish:
		return b != sure
	default:
		return b != gone
	}
}

func (c *careful) other(n string) string {
	if n == c.nodes[0] {
		return c.nodes[1]
	}
	return c.nodes[0]
}

func (c *careful) used(n string) int {
	used := 0
	for _, v := range c.volumes {
		if c.at[[2]string{v, n}] != gone {
			used++
		}
	}
	return used
}

func context(e diskapi.Entry) map[string]string {
	return map[string]string{"attachment": e.Volume + "@" + e.Node}
}

// While a call is open, everything that it takes or gives back is in doubt.
func (c *careful) call(e diskapi.Entry) {
	e.Phase, e.Path = diskapi.Arrived, "/pod"
	e.AccessMode = "SINGLE_NODE_SINGLE_WRITER"
	if e.Call == diskapi.NodeStage || e.Call == diskapi.NodePublish {
		e.Context = context(e)
	}
	c.open = append(c.open, c.observe(e))
	here := [2]string{e.Volume, e.Node}
	switch b := c.beliefs(e.Call); e.Call {
	case diskapi.ControllerPublish, diskapi.NodeStage, diskapi.NodePublish:
		b[here] = max(b[here], doubt)
	case diskapi.DeleteVolume:
	default:
		b[here] = min(b[here], doubt)
	}
}

func (c *careful) beliefs(call diskapi.Call) map[[2]string]belief {
	switch call {
	case diskapi.ControllerPublish, diskapi.ControllerUnpublish:
		return c.at
	case diskapi.NodeStage, diskapi.NodeUnstage:
		return c.staged
	}
	return c.mounted
}

func (c *careful) end(t *rapid.T) {
	i := rapid.IntRange(0, len(c.open)-1).Draw(t, "open call")
	e := c.open[i]
	c.open = slices.Delete(c.open, i, i+1)
	code := rapid.SampledFrom([]string{"OK", "OK", "OK", "Internal", "Unavailable", "DeadlineExceeded"}).Draw(t, "code")
	e.Code = code
	// A lie of staging or publishing to a pod with a final code is outside the
	// contract; see the package documentation.
	final := code == "Internal" && e.Call != diskapi.ControllerPublish && e.Call != diskapi.ControllerUnpublish
	if code == "OK" || !final && rapid.Bool().Draw(t, "applied all the same") {
		applied := e
		applied.Phase = diskapi.Applied
		c.observe(applied)
	}
	e.Phase, e.Context, e.AccessMode = diskapi.Returned, nil, ""
	e.Outcome = map[string]diskapi.Outcome{"OK": diskapi.OK, "DeadlineExceeded": diskapi.Abandoned}[code]
	if e.Outcome == "" {
		e.Outcome = diskapi.Failed
	}
	if e.Call == diskapi.ControllerPublish && code == "OK" {
		e.Context = context(e)
	}
	c.observe(e)
	c.conclude(e)
}

// After an error the caller knows no more than during the call.
func (c *careful) conclude(e diskapi.Entry) {
	here := [2]string{e.Volume, e.Node}
	b := c.beliefs(e.Call)
	switch {
	case e.Call == diskapi.DeleteVolume || e.Code != "OK":
	case e.Call == diskapi.ControllerPublish || e.Call == diskapi.NodeStage || e.Call == diskapi.NodePublish:
		b[here] = sure
	default:
		b[here] = gone
	}
}

func (c *careful) live(t *rapid.T) {
	for range rapid.IntRange(0, 80).Draw(t, "steps") {
		if legal := c.legal(rapid.IntRange(0, 7).Draw(t, "idle") == 0); len(legal) > 0 && (len(c.open) == 0 || rapid.Bool().Draw(t, "call")) {
			c.call(rapid.SampledFrom(legal).Draw(t, "next"))
		} else if len(c.open) > 0 {
			c.end(t)
		}
	}
}

func TestPropertyLegalHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCareful(t)
		c.live(t)
		if v := c.judge.Violations(); len(v) > 0 {
			t.Fatalf("a legal history breaks rules: %+v", v)
		}
	})
}

func (c *careful) careless() map[string]diskapi.Rule {
	out := map[string]diskapi.Rule{}
	add := func(call diskapi.Call, v, n string, rule diskapi.Rule) {
		out[fmt.Sprintf("%s %s %s", call, v, n)] = rule
	}
	for _, v := range c.volumes {
		for _, n := range c.nodes {
			here := [2]string{v, n}
			if c.at[[2]string{v, c.other(n)}] != gone {
				add(diskapi.ControllerPublish, v, n, diskapi.TwoNodes)
			} else if c.at[here] == gone && c.used(n) >= c.slots {
				add(diskapi.ControllerPublish, v, n, diskapi.OverLimit)
			}
			if c.staged[here] == sure || c.mounted[here] == sure {
				add(diskapi.ControllerUnpublish, v, n, diskapi.UnpublishWhileStaged)
			}
			if c.mounted[here] == sure {
				add(diskapi.NodeUnstage, v, n, diskapi.UnstageWhilePublished)
			}
			if c.at[here] == sure {
				add(diskapi.DeleteVolume, v, "", diskapi.DeleteWhileAttached)
			}
			if c.at[here] == gone && c.at[[2]string{v, c.other(n)}] == gone && !c.busy(v, n, diskapi.ControllerUnpublish) {
				add(diskapi.NodeStage, v, n, diskapi.StageBeforePublish)
			}
			if c.staged[here] != sure {
				add(diskapi.NodePublish, v, n, diskapi.PublishBeforeStage)
			}
		}
	}
	return out
}

func TestPropertyCarelessStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCareful(t)
		c.live(t)
		careless := c.careless()
		byRule := map[diskapi.Rule][]string{}
		for step, rule := range careless {
			byRule[rule] = append(byRule[rule], step)
		}
		if len(byRule) == 0 {
			return
		}
		rule := rapid.SampledFrom(slices.Sorted(maps.Keys(byRule))).Draw(t, "rule")
		slices.Sort(byRule[rule])
		step := rapid.SampledFrom(byRule[rule]).Draw(t, "careless step")
		var call, v, n string
		_, _ = fmt.Sscan(step, &call, &v, &n)
		c.call(diskapi.Entry{Call: diskapi.Call(call), Volume: v, Node: n})
		seen := c.judge.Violations()
		if !slices.ContainsFunc(seen, func(x diskapi.Violation) bool { return x.Rule == rule }) {
			t.Fatalf("%s should be %s, the judge saw %+v", step, rule, seen)
		}
	})
}
