// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"
)

// Badness is what a run may have besides the faults of every other: how bad real
// clusters are. docs/internals/simulation.md has a table of them, and of those that no run
// has unless it is asked for, since no fact in the API shows what happens there.
type Badness struct {
	Broken    bool `json:",omitempty"` // kubelets say they are not ready, and live; or leave, and are switched off
	Stuck     bool `json:",omitempty"` // mounts can't be taken down, until the power goes
	Remade    bool `json:",omitempty"` // Nodes are deleted under kubelets that live, and made again by the same boot
	Fenced    bool `json:",omitempty"` // machines that live are cut off from all disks, and declared out of service
	Vanishing bool `json:",omitempty"` // PersistentVolumes vanish, and their disks come back under other names
	Refusals  bool `json:",omitempty"` // somebody else's rules refuse requests, for a while
	ForGood   bool `json:",omitempty"` // those last to the end
	Leases    bool `json:",omitempty"` // the judge counts the times of rules of force from Leases, too
	Forgetful bool `json:",omitempty"` // kubelets that start don't find all that is staged: no fact in the API shows it
	Repairs   bool `json:",omitempty"` // and unstages what kubelets have forgotten, where its policy has repairStaged
	Asked     bool `json:",omitempty"` // users write tickets, which are told that they have their volumes, and asked before they lose them
	Wherever  bool `json:",omitempty"` // and some of these leave their node to the controller
	Detached  bool `json:",omitempty"` // and some ask for their volumes to be at no node, and some have parameters
	Gaps      bool `json:",omitempty"` // watches have gaps: informers list anew, and are not shown what came and went meanwhile
	Spoken    bool `json:",omitempty"` // moorage-node runs on each machine, comes and goes, and a policy requires its word
}

// badness is every kind by name, and whether the Standalone runs of every fourth seed draw it, half of them. The shares
// noted beside the others are of Standalone runs, too.
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
	{"spoken", false, func(b *Badness) { b.Forgetful, b.Spoken = true, true }}, // one run in sixteen has it
	{"repairs", false, func(b *Badness) { b.Forgetful, b.Spoken, b.Repairs = true, true, true }},
	{"asked", true, func(b *Badness) { b.Asked = true }},
	{"gaps", false, func(b *Badness) { b.Gaps = true }},                        // about one run in nine has it
	{"wherever", false, func(b *Badness) { b.Asked, b.Wherever = true, true }}, // one run in 32 has it
	{"detached", false, func(b *Badness) { b.Asked, b.Detached = true, true }}, // and another one this
}

// Worse is a run with kinds of badness besides: their names, with commas between.
// Cooperative runs stay as they are: what kube-controller-manager does then is its
// own affair.
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

// worsen draws of what is on. Refusals for good and tickets that are asked are not drawn beside
// vanishing volumes: docs/internals/simulation.md has the seeds that fail then.
func (c *Config) worsen(often func() bool) {
	for _, b := range badness {
		if draws := often(); b.on && draws && !c.Cooperative && (b.name != "for-good" && b.name != "asked" || !c.Vanishing) {
			b.set(&c.Badness)
		}
	}
}
