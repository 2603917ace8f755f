// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"
)

// Badness adds faults of real clusters. docs/internals/simulation.md has a table of them, and of the faults
// on request only, since no fact in the API shows them.
type Badness struct {
	Broken    bool `json:",omitempty"` // kubelets live and report not ready, or leave and are switched off
	Stuck     bool `json:",omitempty"` // mounts stay until the power goes
	Remade    bool `json:",omitempty"` // Nodes of living kubelets are made again by the same boot
	Fenced    bool `json:",omitempty"` // living machines lose all disks, and are declared out of service
	Vanishing bool `json:",omitempty"` // their disks return under other names
	Refusals  bool `json:",omitempty"` // foreign rules refuse requests for a while
	ForGood   bool `json:",omitempty"` // refusals last to the end
	Leases    bool `json:",omitempty"` // the judge also counts the times of rules of force from Leases
	Forgetful bool `json:",omitempty"` // starting kubelets miss staged volumes: no fact in the API shows it
	Asked     bool `json:",omitempty"` // users' tickets are told of their volumes, and asked before they lose them
	Wherever  bool `json:",omitempty"` // some tickets leave their node to the controller
	Detached  bool `json:",omitempty"` // some ask for their volumes to be at no node, and some have parameters
	Gaps      bool `json:",omitempty"` // watches have gaps: informers list anew, and miss short-lived objects
	Spoken    bool `json:",omitempty"` // moorage-nodes come and go, and their reports are required
}

// The boolean: half of the Standalone runs with every fourth seed draw this kind.
var badness = []struct {
	name string
	on   bool
	set  func(*Badness)
}{
	{"broken", true, func(b *Badness) { b.Broken = true }},
	{"stuck", true, func(b *Badness) { b.Stuck = true }},
	{"remade", true, func(b *Badness) { b.Remade = true }},
	{"fenced", true, func(b *Badness) { b.Fenced = true }},
	{"vanishing", true, func(b *Badness) { b.Vanishing = true }},
	{"refusals", true, func(b *Badness) { b.Refusals = true }},
	{"for-good", true, func(b *Badness) { b.Refusals, b.ForGood = true, true }},
	{"leases", true, func(b *Badness) { b.Leases = true }},
	{"forgetful", false, func(b *Badness) { b.Forgetful = true }},
	{"spoken", false, func(b *Badness) { b.Forgetful, b.Spoken = true, true }}, // one run in sixteen
	{"asked", true, func(b *Badness) { b.Asked = true }},
	{"gaps", false, func(b *Badness) { b.Gaps = true }},                        // about one run in nine
	{"wherever", false, func(b *Badness) { b.Asked, b.Wherever = true, true }}, // one run in 32
	{"detached", false, func(b *Badness) { b.Asked, b.Detached = true, true }}, // another one in 32
}

// Worse takes names separated by commas. Cooperative runs stay unchanged: kube-controller-manager's own
// behaviour is not judged.
func (c Config) Worse(names string) (Config, error) {
	for _, name := range strings.Split(names, ",") {
		i := slices.IndexFunc(badness, func(b struct {
			name string
			on   bool
			set  func(*Badness)
		}) bool {
			return b.name == name
		})
		if i < 0 {
			return c, fmt.Errorf("there is no badness of the name %q", name)
		}
		if !c.Cooperative {
			badness[i].set(&c.Badness)
		}
	}
	return c, nil
}

// Permanent refusals and asked tickets are not drawn together with vanishing volumes:
// docs/internals/simulation.md has the seeds that then fail.
func (c *Config) worsen(often func() bool) {
	for _, b := range badness {
		if draws := often(); b.on && draws && !c.Cooperative && (b.name != "for-good" && b.name != "asked" || !c.Vanishing) {
			b.set(&c.Badness)
		}
	}
}
