// SPDX-License-Identifier: Apache-2.0

package judge

import "github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"

// Together is a moment at which an exclusive volume came to be at two nodes.
type Together struct {
	Entry diskapi.Entry
	Other string
	// Mounted: both nodes have it attached, and staged or published. Otherwise both have it attached.
	Mounted bool
}

// FindTogether needs a log from the service's first entry. Unlike the rule two-nodes it goes by the facts:
// a detach that was carried out and answered with an error has detached.
func FindTogether(log []diskapi.Entry) []Together {
	t := together{attached: map[string]map[string]bool{}, mounts: map[string]map[string]map[string]bool{}}
	for _, e := range log {
		switch {
		case e.Phase == diskapi.Noted && e.Call == diskapi.FenceNode:
			t.powerOff(e.Node)
		case e.Phase == diskapi.Applied:
			t.apply(e)
		}
	}
	return t.found
}

type together struct {
	attached map[string]map[string]bool            // volume, node
	mounts   map[string]map[string]map[string]bool // volume, node, path
	found    []Together
}

func (t *together) apply(e diskapi.Entry) {
	switch e.Call {
	case diskapi.ControllerPublish:
		if diskapi.Exclusive(e.AccessMode) {
			t.note(e, false, func(node string) bool { return t.attached[e.Volume][node] })
		}
		if t.attached[e.Volume] == nil {
			t.attached[e.Volume] = map[string]bool{}
		}
		t.attached[e.Volume][e.Node] = true
	case diskapi.ControllerUnpublish:
		delete(t.attached[e.Volume], e.Node)
	case diskapi.NodeStage, diskapi.NodePublish:
		t.mount(e)
	case diskapi.NodeUnstage, diskapi.NodeUnpublish:
		delete(t.mounts[e.Volume][e.Node], e.Path)
	}
}

func (t *together) mount(e diskapi.Entry) {
	if t.mounts[e.Volume] == nil {
		t.mounts[e.Volume] = map[string]map[string]bool{}
	}
	if len(t.mounts[e.Volume][e.Node]) == 0 {
		if diskapi.Exclusive(e.AccessMode) {
			t.note(e, true, func(node string) bool { return len(t.mounts[e.Volume][node]) > 0 })
		}
		t.mounts[e.Volume][e.Node] = map[string]bool{}
	}
	t.mounts[e.Volume][e.Node][e.Path] = true
}

func (t *together) note(e diskapi.Entry, mounted bool, has func(node string) bool) {
	for node := range t.attached[e.Volume] {
		if node != e.Node && has(node) {
			t.found = append(t.found, Together{Entry: e, Other: node, Mounted: mounted})
			return
		}
	}
}

func (t *together) powerOff(node string) {
	for _, at := range t.mounts {
		delete(at, node)
	}
}
