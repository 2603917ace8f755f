// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"slices"
	"strings"
)

// also adds what to do about something else that is in the way, unless it is said already.
func (c *Cause) also(do string) {
	if do != "" && !strings.Contains(c.Do, do) && !slices.Contains(c.Also, do) {
		c.Also = append(c.Also, do)
	}
}

// alsoOfVolumes adds what to do about the volumes that wait for something else, which does not pass
// by itself.
func (c *Cause) alsoOfVolumes(waiting []*PodVolume, first *PodVolume) {
	said := []string{c.Code, first.Reasons[0].Code}
	for _, v := range waiting {
		if r := v.Reasons[0]; r.Do != "" && !transient(r) && !slices.Contains(said, r.Code) {
			said = append(said, r.Code)
			c.also(fmt.Sprintf("For volume %s (%s): %s", v.Name, r.Code, r.Do))
		}
	}
}

// alsoAtNodes adds what to do about the other things that keep a pod's volumes from the nodes that are
// a choice, unless it is enough at one of them that the cause ends, which is so at each.
func (c *Cause) alsoAtNodes(x *Pod) {
	everywhere, enough := true, false
	var others []string
	for i := range x.Nodes {
		if x.Nodes[i].Barred != "" {
			continue
		}
		here, more := false, false
		for j := range x.Nodes[i].Reasons {
			if r := &x.Nodes[i].Reasons[j]; r.Code == c.Code {
				here = true
			} else {
				more, others = true, append(others, r.Do)
			}
		}
		everywhere, enough = everywhere && here, enough || here && !more
	}
	for _, do := range others {
		if !everywhere || !enough {
			c.also(do)
		}
	}
}

// alsoRefused adds what to do about the nodes that a scheduler's message refuses for other reasons, in
// its order. answered is what is said already.
func (w *World) alsoRefused(c *Cause, message string, answered []string) {
	for _, part := range partsByNodes(message) {
		i := slices.IndexFunc(refusals, func(r refusal) bool { return r.in(part) })
		if i < 0 {
			continue
		}
		if do := w.doAbout(&refusals[i]); !slices.Contains(answered, do) {
			c.also(do)
		}
	}
}
