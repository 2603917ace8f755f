// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"slices"
	"sync"

	"github.com/moorage-dev/moorage/internal/flow"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// deciding keeps grants apart that are decided on side by side. A decision may take long where a node has
// many tickets, and holds up no other: what it grants is compared with what has been granted since it began, and
// left out where that may matter to it. The ledger knows of each grant before the next is compared.
type deciding struct {
	mu     sync.Mutex
	count  int      // of grants so far
	recent []counts // the last of them
}

// counts names the node and the volumes of a grant: later decisions about them have to see it.
type counts struct {
	node    ledger.NodeName
	volumes []ledger.VolumeID
}

// maxRecent is how many are kept. Who began before all of them decides anew.
const maxRecent = 1024

// began is what is to be asked for before the facts of a decision are.
func (d *deciding) began() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.count
}

// add notes a grant that the ledger knows of. The caller holds mu.
func (d *deciding) add(c counts) {
	d.count++
	if d.recent = append(d.recent, c); len(d.recent) > 2*maxRecent {
		d.recent = slices.Clone(d.recent[len(d.recent)-maxRecent:])
	}
}

// overtaken says whether something was granted since a decision began that may matter to it. The caller
// holds mu.
func (d *deciding) overtaken(began int, mine counts) bool {
	since := d.count - began
	if since > len(d.recent) {
		return true
	}
	return slices.ContainsFunc(d.recent[len(d.recent)-since:], func(c counts) bool {
		return c.node == mine.node || slices.ContainsFunc(c.volumes, func(v ledger.VolumeID) bool { return !v.IsZero() && slices.Contains(mine.volumes, v) })
	})
}

// announce has the ledger know of the grants among decisions on a node's tickets, and leaves those out that have
// been overtaken since they began: they are to be decided on again.
func (d *deciding) announce(cache Cache, n ledger.NodeName, began int, decided []flow.Decided) (left []flow.Decided, again bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := cache.Snapshot()
	of := func(one flow.Decided) counts { return counts{n, slices.Concat(one.Volumes, s.TicketAt(one.Ticket.ID))} }
	for _, one := range decided {
		if one.Ruling == flow.Grant && d.overtaken(began, of(one)) {
			again = true
			continue
		}
		left = append(left, one)
	}
	for _, e := range flow.Announce(left) {
		cache.Apply(e)
	}
	for _, one := range left {
		if one.Ruling == flow.Grant {
			d.add(of(one))
		}
	}
	return left, again
}
