// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Past has the outcomes of earlier tickets, for each operation of a volume. It is of one process: the
// next leader gives each of them one attempt more.
type Past map[key]attempt

// attempt is the last ticket, with the outcomes of its predecessors.
type attempt struct {
	Failures int       // how often in a row one had the volume, and the operation was not done
	Not      time.Time // no other one is made before that

	// For the present or last ticket; empty once it is accounted for.
	ticket     string
	id         ledger.TicketID
	owner      Object
	held       time.Time // when it was first seen granted; zero: never
	progress   int64     // of the operation, when it was first seen
	infeasible bool      // the operation was so already then
	unclear    time.Time // since when it can't be seen what came of it; zero: it can
}

// Owners are the objects whose operations have a ticket, or had one at the last Decide.
func (p Past) Owners() []Object {
	var list []Object
	for _, a := range p {
		if a.ticket != "" {
			list = append(list, a.owner)
		}
	}
	return list
}

// hopeless says whether a ticket's operation was refused for good while the ticket was there.
func (a attempt) hopeless(t *Ticket, w *Work) bool {
	return w.Infeasible && a.ticket == t.UID && !a.infeasible
}

// remember accounts for the present tickets, and for those that are gone.
func (d *decision) remember(wants map[key][]want) {
	there := map[string]*Ticket{}
	for i := range d.Tickets {
		if t := &d.Tickets[i]; !t.Deleting {
			there[t.UID] = t
		}
	}
	for k, a := range d.plan.Past {
		if a.ticket != "" {
			d.keys[a.ticket] = k
		}
		d.plan.Past[k] = d.account(k, a, there[a.ticket], wants[k])
	}
	for k, list := range wants {
		for _, w := range list {
			uid, granted := d.standing(w)
			if uid == "" || d.plan.Past[k].ticket != "" {
				continue
			}
			a := d.plan.Past[k]
			a.ticket, a.id, a.owner = uid, w.ID, w.Owner
			a.progress, a.infeasible, a.held, a.unclear = w.progress, w.work.Infeasible, time.Time{}, time.Time{}
			if granted {
				a.held = d.Now
			}
			d.plan.Past[k] = a
		}
	}
}

// standing is the UID of the wanted ticket, with its label or without, and whether it is granted;
// empty: there is none.
func (d *decision) standing(w want) (uid string, granted bool) {
	if t := w.existing; t != nil {
		if t.Deleting {
			return "", false
		}
		return t.UID, t.Granted
	}
	if t := d.Snapshot.Ticket(w.ID); t != nil && MayBe(t.ID, t.Type) {
		return t.UID, t.Phase == ledger.TicketGranted
	}
	return "", false
}

// bare is the ticket of an attempt after its marks of Moorage were taken off. It still has the volume.
// nil: it has its marks, or is gone.
func (d *decision) bare(a attempt) *ledger.Ticket {
	if a.ticket == "" || d.byName[a.id] != nil {
		return nil
	}
	t := d.Snapshot.Ticket(a.id)
	if t == nil || t.UID != a.ticket {
		return nil
	}
	return t
}

// account updates an attempt, with its ticket, or without.
func (d *decision) account(k key, a attempt, t *Ticket, wants []want) attempt {
	if a.ticket == "" {
		return a
	}
	var is *want
	for i := range wants {
		if wants[i].Owner.UID == a.owner.UID {
			is = &wants[i]
		}
	}
	if t != nil && is != nil {
		if t.Granted && a.held.IsZero() {
			a.held = d.Now
		}
		return a
	}
	if t != nil && d.unknown(t) {
		return a
	}
	if bare := d.bare(a); bare != nil {
		if a.held.IsZero() && bare.Phase == ledger.TicketGranted {
			a.held = d.Now
		}
		return a
	}
	if is == nil && d.unclear(k.operation, a.owner) {
		if a.unclear.IsZero() {
			a.unclear = d.Now
		}
		if left := patience - d.Now.Sub(a.unclear); left > 0 {
			d.again(left)
			return a
		}
	}
	// The ticket or its operation is over.
	result := Unfinished
	switch {
	case is == nil && d.done(a.owner), is != nil && is.progress != a.progress:
		a.Failures, a.Not, result = 0, time.Time{}, Done
	case a.held.IsZero():
		a.Not, result = d.Now.Add(shortestPause), Waited
	default:
		a.Failures++
		a.Not = d.Now.Add(pause(d.Now.Sub(a.held), a.Failures))
	}
	d.plan.Over = append(d.plan.Over, Over{k.operation, result})
	a.ticket, a.id, a.owner, a.held = "", ledger.TicketID{}, Object{}, time.Time{}
	return a
}

// done says whether a finished operation has succeeded: a claim for a clone, or for a larger volume, is
// bound to such a PersistentVolume.
func (d *decision) done(of Object) bool {
	if of.Kind != kindClaim {
		return d.Ready[of.UID]
	}
	c := d.Snapshot.Claim(ledger.ClaimKey{Namespace: of.Namespace, Name: of.Name})
	return c != nil && c.UID == of.UID && !c.Deleting && boundTo(d.Snapshot, c) != nil
}

// unclear says whether a clone's claim names a PersistentVolume that is not seen: it may be seen
// later than the claim, which is written after it.
func (d *decision) unclear(o ledger.Operation, of Object) bool {
	if o != ledger.OperationClone {
		return false
	}
	c := d.Snapshot.Claim(ledger.ClaimKey{Namespace: of.Namespace, Name: of.Name})
	return c != nil && c.UID == of.UID && c.PersistentVolume != "" && d.Snapshot.PersistentVolume(c.PersistentVolume) == nil
}

// pause is how long a volume is left to others after an operation had it for a time: as long
// as that, and twice as long after each further failure.
func pause(held time.Duration, failures int) time.Duration {
	p := max(held, shortestPause)
	for i := 1; i < failures && p < longestPause; i++ {
		p *= 2
	}
	return min(p, longestPause)
}

// forgetAfter is how long after its pause an operation's failures are remembered.
const forgetAfter = 24 * time.Hour

// forget drops unneeded entries.
func (d *decision) forget(wants map[key][]want) {
	for k, a := range d.plan.Past {
		if a.ticket == "" && len(wants[k]) == 0 && (a.Failures == 0 && !d.Now.Before(a.Not) || d.Now.Sub(a.Not) > forgetAfter) {
			delete(d.plan.Past, k)
		}
	}
}
