// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/translate"
)

// Fenced are volumes that are taken from a node without its kubelet's report by one rule, and
// are still there as far as is known, or may still be mounted there: see v1alpha1.FencedNode.
type Fenced struct {
	// By is the rule; empty where it has ended, and the volumes may still be mounted there.
	By string `json:"by,omitempty"`
	// Proof: the rule proves that the machine writes to them no more.
	Proof bool `json:"proof"`
	// Since is when the first of them that are still there was listed so.
	Since   time.Time `json:"since,omitzero"`
	Volumes int       `json:"volumes"`
}

// FencedAt says what the VolumeHolds say of a node from which volumes are taken, or were,
// by rule.
func (w *World) FencedAt(n *corev1.Node) []Fenced {
	byRule, machine := map[string]*Fenced{}, translate.Node(n).SystemUUID
	for _, h := range w.Holds {
		for i := range h.Status.Fenced {
			f := &h.Status.Fenced[i]
			if f.Node != n.Name || f.NodeUID != "" && f.NodeUID != n.UID || f.SystemUUID != "" && f.SystemUUID != ledger.OtherMachine && f.SystemUUID != machine {
				continue // of another machine that had the name
			}
			rule := string(f.Rule)
			if rule != "" && !w.isAt(ledger.VolumeID{Driver: h.Spec.Driver, Handle: h.Spec.Handle}, ledger.NodeName(n.Name)) {
				continue // it has left: that its hold still names the node says nothing of today
			}
			if byRule[rule] == nil {
				byRule[rule] = &Fenced{By: rule, Proof: arbiter.Proves(rule)}
			}
			of := byRule[rule]
			of.Volumes++
			if f.Since != nil && (of.Since.IsZero() || f.Since.Time.Before(of.Since)) {
				of.Since = f.Since.Time
			}
		}
	}
	var list []Fenced
	for _, f := range byRule {
		list = append(list, *f)
	}
	slices.SortFunc(list, func(a, b Fenced) int { return cmp.Compare(a.By, b.By) })
	return list
}

// isAt says whether a volume is, or may be, at a node, beyond what somebody asks for there.
func (w *World) isAt(id ledger.VolumeID, name ledger.NodeName) bool {
	v := w.Snapshot.Volume(id)
	p := v.NodeVolume(name)
	if p == nil {
		return false
	}
	at := w.nodeVolume(v, p)
	return at.maybeThere()
}

// Words say what it is, and what it proves.
func (f Fenced) Words() string {
	volumes := Count(f.Volumes, "volume")
	switch {
	case f.By == "":
		return volumes + " may still be mounted there since a forced detach"
	case f.Proof:
		return volumes + " taken by " + f.By + ", proof that the machine writes no more"
	}
	return volumes + " taken by " + f.By + ", a time that proves nothing"
}
