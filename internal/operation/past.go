// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Past has the outcomes of earlier tickets. It is of one process: the next leader gives each operation one
// more attempt.
type Past map[key]attempt

type attempt struct {
	Failures int       // in a row, with the volume, and the operation not done
	Not      time.Time // no other ticket before that

	// The present or last ticket; empty once accounted for.
	ticket     string
	id         ledger.TicketID
	owner      Object
	held       time.Time // first seen granted; zero: never
	progress   int64     // when first seen
	infeasible bool      // already then
	unclear    time.Time // since when its outcome can't be seen; zero: it can
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

func (a attempt) hopeless(t *Ticket, w *Work) bool {
	return w.Infeasible && a.ticket == t.UID && !a.infeasible
}

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

// standing may have lost its label; empty: none.
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

// bare is an attempt's ticket that lost its marks of Moorage and still has the volume; else nil.
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

func (d *decision) done(of Object) bool {
	if of.Kind != kindClaim {
		return d.Ready[of.UID]
	}
	c := d.Snapshot.Claim(ledger.ClaimKey{Namespace: of.Namespace, Name: of.Name})
	return c != nil && c.UID == of.UID && !c.Deleting && boundTo(d.Snapshot, c) != nil
}

// unclear: a clone's claim names a PersistentVolume that may still appear.
func (d *decision) unclear(o ledger.Operation, of Object) bool {
	if o != ledger.OperationClone {
		return false
	}
	c := d.Snapshot.Claim(ledger.ClaimKey{Namespace: of.Namespace, Name: of.Name})
	return c != nil && c.UID == of.UID && c.PersistentVolume != "" && d.Snapshot.PersistentVolume(c.PersistentVolume) == nil
}

// pause is as long as the operation had the volume, doubled after each further failure.
func pause(held time.Duration, failures int) time.Duration {
	p := max(held, shortestPause)
	for i := 1; i < failures && p < longestPause; i++ {
		p *= 2
	}
	return min(p, longestPause)
}

// forgetAfter is how long after its pause an operation's failures are remembered.
const forgetAfter = 24 * time.Hour

func (d *decision) forget(wants map[key][]want) {
	for k, a := range d.plan.Past {
		if a.ticket == "" && len(wants[k]) == 0 && (a.Failures == 0 && !d.Now.Before(a.Not) || d.Now.Sub(a.Not) > forgetAfter) {
			delete(d.plan.Past, k)
		}
	}
}
