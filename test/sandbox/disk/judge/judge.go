// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// Judge folds the log into violations. It is for serial use.
type Judge struct {
	nodes      map[string]*node
	places     map[string]map[string]*place // volume -> node -> place
	contents   map[string]*content          // volume -> what was written to it
	violations []diskapi.Violation
	cut        []netip.Prefix   // clients that the storage refuses
	open       map[uint64][]int // call -> indexes of its violations, until it returns
	operations operations
}

type node struct {
	slots  int // as last announced; 0 is not known
	fenced bool
	// address is not valid if it is not known.
	address  netip.Addr
	fencedAt uint64
	volumes  map[string]struct{}
}

func New() *Judge {
	return &Judge{
		nodes:    map[string]*node{},
		places:   map[string]map[string]*place{},
		contents: map[string]*content{},
		open:     map[uint64][]int{},

		operations: newOperations(),
	}
}

// Violations are in the order in which they were seen. Those of an unfinished call are pending and change
// when it returns.
func (j *Judge) Violations() []diskapi.Violation { return slices.Clone(j.violations) }

func (j *Judge) Count() int { return len(j.violations) }

func (j *Judge) Staged(volume string) []string {
	var out []string
	for n, p := range j.places[volume] {
		if p.inUse() {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

func (j *Judge) Observe(e diskapi.Entry) {
	switch e.Phase {
	case diskapi.Arrived:
		j.arrived(e)
	case diskapi.Applied:
		j.applied(e)
	case diskapi.Returned:
		j.returned(e)
		j.settle(e)
	case diskapi.Noted:
		j.noted(e)
	}
	j.observeWrites(e)
	j.observeOperations(e)
	j.reindex(e.Volume, e.Node)
}

func (j *Judge) node(id string) *node {
	n, ok := j.nodes[id]
	if !ok {
		n = &node{volumes: map[string]struct{}{}}
		j.nodes[id] = n
	}
	return n
}

func (j *Judge) place(volume, node string) *place {
	at := j.places[volume]
	if at == nil {
		at = map[string]*place{}
		j.places[volume] = at
	}
	p, ok := at[node]
	if !ok {
		p = &place{targets: map[string]*use{}}
		at[node] = p
	}
	return p
}

// reindex keeps node.volumes in step with the place, and drops empty places.
func (j *Judge) reindex(volume, id string) {
	p, ok := j.places[volume][id]
	if !ok {
		return
	}
	if p.at() {
		j.node(id).volumes[volume] = struct{}{}
	} else {
		delete(j.node(id).volumes, volume)
	}
	if p.idle() {
		delete(j.places[volume], id)
		if len(j.places[volume]) == 0 {
			delete(j.places, volume)
		}
	}
}

func (j *Judge) report(e diskapi.Entry, rule diskapi.Rule, format string, args ...any) {
	v := diskapi.Violation{
		Seq: e.Seq, Time: e.Time, Rule: rule, Call: e.Call, Volume: e.Volume, Node: e.Node,
		Attempt: diskapi.Pending, Message: fmt.Sprintf(format, args...),
	}
	if e.Phase == diskapi.Arrived {
		j.open[e.ID] = append(j.open[e.ID], len(j.violations))
	} else {
		v.Attempt = diskapi.Happened
	}
	j.violations = append(j.violations, v)
}

func (j *Judge) settle(e diskapi.Entry) {
	attempt := diskapi.InDoubt
	switch e.Outcome {
	case diskapi.OK:
		attempt = diskapi.Happened
	case diskapi.Refused:
		attempt = diskapi.AttemptRefused
	}
	for _, i := range j.open[e.ID] {
		j.violations[i].Attempt = attempt
	}
	delete(j.open, e.ID)
}

func (j *Judge) noted(e diskapi.Entry) {
	switch e.Call {
	case diskapi.FenceNode:
		n := j.node(e.Node)
		n.fenced, n.fencedAt = true, e.Seq
		for _, at := range j.places {
			if p, ok := at[e.Node]; ok {
				p.powerOff()
			}
		}
	case diskapi.UnfenceNode:
		j.node(e.Node).fenced = false
	case diskapi.Finish:
		j.finish(e)
	}
}

func (j *Judge) finish(e diskapi.Entry) {
	for _, volume := range slices.Sorted(maps.Keys(j.places)) {
		for _, id := range slices.Sorted(maps.Keys(j.places[volume])) {
			if left := j.places[volume][id].leftovers(); len(left) > 0 {
				e.Volume, e.Node = volume, id
				j.report(e, diskapi.Leftover, "at the end of the run volume %s is still %s at node %s",
					volume, strings.Join(left, " and "), id)
			}
		}
	}
}

func (j *Judge) others(volume, id string) []string {
	var out []string
	for n, p := range j.places[volume] {
		if n != id && p.at() {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, cmp.Compare)
	return out
}
