// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/explain"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
	"github.com/moorage-dev/moorage/internal/kubectl/view"
)

// Detail has the facts about an object.
type Detail struct {
	Ref    string `json:"ref"`
	Answer string `json:"answer"`
	// Cause is the problem and remedy, or nil.
	Cause *facts.Reason `json:"cause,omitempty"`
	// Text is the output of kubectl moorage explain -o wide, by Commands in a terminal.
	Text     string   `json:"text,omitempty"`
	Commands []string `json:"commands,omitempty"`
	// Volume is set for a volume or a claim.
	Volume *facts.Volume `json:"volume,omitempty"`
	Plan   *Plan         `json:"plan,omitempty"`
}

// Plan is a drain plan.
type Plan struct {
	Answer string `json:"answer"`
	// Waits: a known or hidden fact obstructs a drain, as in drain-plan's exit code.
	Waits bool   `json:"waits"`
	Text  string `json:"text"`
}

type details struct {
	cluster *cluster.Cluster
	world   *facts.World
	style   screen.Style // for the same cluster or file
}

// of takes a reference as in view.
func (d *details) of(ctx context.Context, ref string) (Detail, error) {
	kind, name, _ := strings.Cut(ref, "/")
	namespace, inNamespace, _ := strings.Cut(name, "/")
	var out Detail
	var err error
	switch kind {
	case "pod":
		out, err = d.explained(ctx, "pod", namespace, inNamespace)
	case "claim":
		out, err = d.explained(ctx, "pvc", namespace, inNamespace)
	case "volume":
		out, err = d.volume(ctx, name)
	case "node":
		out, err = d.node(ctx, name)
	case "ticket":
		out, err = d.explained(ctx, "ticket", namespace, inNamespace)
	default:
		err = &command.NotFoundError{Message: fmt.Sprintf("%q names no object", ref)}
	}
	out.Ref = ref
	d.ask(&out)
	return out, err
}

// ask adapts suggested commands in copies only.
func (d *details) ask(x *Detail) {
	if x.Cause != nil {
		c := *x.Cause
		c.Do, x.Cause = d.style.Asking(c.Do), &c
	}
	if x.Volume != nil && x.Volume.Reason != nil {
		v, r := *x.Volume, *x.Volume.Reason
		r.Do, v.Reason, x.Volume = d.style.Asking(r.Do), &r, &v
	}
}

func viewOf(w *facts.World, s screen.Style) *view.View {
	v := view.Of(w)
	for i := range v.Links {
		v.Links[i].Do = s.Asking(v.Links[i].Do)
	}
	return v
}

func (d *details) explained(ctx context.Context, kind, namespace, name string) (Detail, error) {
	x, text, err := explain.Of(ctx, d.cluster, d.world, d.style, kind, namespace, name)
	if err != nil {
		return Detail{}, err
	}
	out := Detail{Answer: x.Answer, Cause: x.Cause, Text: text, Commands: []string{d.command("explain " + kind + "/" + name + command.Inside(namespace) + " -o wide")}}
	if value, ok := x.Value.(facts.Storage); ok {
		out.Volume = value.Volume
	}
	return out, nil
}

func (d *details) command(line string) string { return d.style.Linked("kubectl moorage " + line) }

func (d *details) volume(ctx context.Context, key string) (Detail, error) {
	found, ok := d.world.VolumeOf(key)
	if !ok {
		return Detail{}, &command.NotFoundError{Message: fmt.Sprintf("volume %q is not known any more", key)}
	}
	v := &found
	out := Detail{Answer: "is " + v.State + "; no PersistentVolume names it."}
	if v.PersistentVolume != "" {
		namespace, claim, hasClaim := strings.Cut(v.Claim, "/")
		var err error
		if hasClaim && d.world.Claim(namespace, claim) != nil {
			out, err = d.explained(ctx, "pvc", namespace, claim)
		} else {
			out, err = d.explained(ctx, "pv", "", v.PersistentVolume)
		}
		if err != nil {
			return Detail{}, err
		}
	}
	out.Volume = v
	return out, nil
}

func (d *details) node(ctx context.Context, name string) (Detail, error) {
	if d.world.Node(name) == nil && slices.ContainsFunc(d.world.ListNodes(), func(n facts.NodeState) bool { return n.Node == name }) {
		return Detail{Answer: "can't be read, or does not exist: volumes are bound to it all the same."}, nil
	}
	out, err := d.explained(ctx, "node", "", name)
	if err != nil {
		return out, err
	}
	plan := d.world.DrainPlan(name)
	var text bytes.Buffer
	if err := screen.DrainPlan(&text, d.style, plan, d.world.Now, true); err != nil {
		return out, err
	}
	out.Plan = &Plan{Answer: plan.Answer, Waits: !plan.Clear(), Text: text.String()}
	out.Commands = append(out.Commands, d.command("drain-plan "+name))
	return out, nil
}
