// SPDX-License-Identifier: Apache-2.0

package main

type stage struct {
	left, right *component
	object      string // in the API server
	content     string
}

type component struct {
	name  string
	does  []string
	ours  bool
	reads bool // the arrow comes from the API server
}

var stages = []stage{
	{
		left:   &component{name: "moorage webhook", does: []string{"stamps pods of namespaces", "that opted in"}, ours: true},
		object: "Pod", content: "scheduler, volume-status",
		right: &component{name: "you, your controllers", does: []string{"create the pod"}},
	},
	{
		left:   &component{name: "moorage scheduler", does: []string{"finds a node that all volumes", "can follow to, with free slots"}, ours: true},
		object: "Binding", content: "and reservation, one write",
		right: &component{name: "kube-scheduler", does: []string{"places all other pods, or", "asks Moorage's extender"}},
	},
	{
		left:   &component{name: "moorage controller", does: []string{"detaches on evidence,", "attaches; says who waits"}, ours: true},
		object: "VolumeAttachment", content: "VolumeHold, VolumeTicket",
		right: &component{name: "kube-controller-manager", does: []string{"attaches and detaches", "in Cooperative mode"}},
	},
	{
		left:   &component{name: "moorage-attacher", does: []string{"optional sidecar in place", "of external-attacher"}, ours: true},
		object: "attached: true", content: "in the VolumeAttachment",
		right: &component{name: "CSI driver, its attacher", does: []string{"attach the disk"}},
	},
	{
		left:   &component{name: "moorage-node", does: []string{"says what is mounted (runs", "in Standalone mode)"}, ours: true},
		object: "Node", content: "volumesAttached, …InUse",
		right: &component{name: "kubelet", does: []string{"mounts the volume,", "starts the pod"}},
	},
	{
		left:   &component{name: "kubectl moorage", does: []string{"on your machine: explains,", "plans drains"}, ours: true, reads: true},
		object: "all of these", content: "",
	},
}

const (
	sideWidth   = 238
	middleWidth = 196
	gap         = 26
	rowHeight   = 92
	boxHeight   = 74
	top         = 44
	side        = 12
)

func drawArchitecture() string {
	width, height := 2*sideWidth+middleWidth+2*gap+2*side, top+len(stages)*rowHeight+4
	c := newCanvas(width, height, "The components of Moorage and of Kubernetes, and the objects of the API server that they meet in")
	left, middle := side, side+sideWidth+gap
	right := middle + middleWidth + gap
	head := func(x int, colour, words string) { c.text(x, 28, style{16, colour, true, "middle"}, words) }
	head(left+sideWidth/2, ours, "Moorage")
	head(middle+middleWidth/2, ink, "API server")
	head(right+sideWidth/2, faint, "Kubernetes, driver")
	c.box(middle, top-6, middleWidth, len(stages)*rowHeight-4, edge, shade)
	for i, s := range stages {
		y := top + i*rowHeight
		centre := y + boxHeight/2
		c.text(middle+middleWidth/2, centre-2, style{16, ink, true, "middle"}, s.object)
		c.text(middle+middleWidth/2, centre+18, style{13, faint, false, "middle"}, s.content)
		for _, at := range []struct {
			*component
			x, from, to int
		}{{s.left, left, left + sideWidth, middle}, {s.right, right, right, middle + middleWidth}} {
			if at.component == nil {
				continue
			}
			stroke, fill := edge, ground
			if at.ours {
				stroke, fill = ours, tint
			}
			c.box(at.x, y, sideWidth, boxHeight, stroke, fill)
			c.text(at.x+12, y+22, style{15, ink, true, ""}, at.name)
			for n, words := range at.does {
				c.text(at.x+12, y+43+n*19, style{15, ink, false, ""}, words)
			}
			from, to := at.from, at.to
			if at.reads {
				from, to = to, from
			}
			c.arrow(from, to, centre, stroke)
		}
	}
	return c.String()
}
