// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

const (
	// Timeout is the longest life of a ticket.
	Timeout = 15 * time.Minute
	// MaxPerNamespace bounds the operations' tickets that a namespace has, or has asked for, at once.
	MaxPerNamespace = 16
	// shortestPause is between two tickets for a volume's operation after a failure; it grows to
	// longestPause.
	shortestPause = 10 * time.Second
	longestPause  = 8 * Timeout
	// patience is a ticket's wait before the operation's owner gets an event.
	patience = 30 * time.Second
)

// State has the facts for a decision.
type State struct {
	Snapshot ledger.Snapshot
	Now      time.Time
	// Namespace is Moorage's own, for tickets of volumes without a claim.
	Namespace string
	Works     []Work
	// Unknown are kinds that have not been seen as a whole: nothing is made or ended for them.
	Unknown map[string]bool
	// Tickets are Moorage's own for operations.
	Tickets []Ticket
	// Ready are the ready contents, by UID, of Past.Owners.
	Ready map[string]bool
	// Past is the last result of Decide; nil at first.
	Past Past
}

// Plan is the result of Decide.
type Plan struct {
	Make     []Make
	End      []Ticket
	Troubles []Trouble
	Over     []Over
	// Past is for the next State.
	Past Past
	// Again is the time until something changes by time alone; 0: nothing does.
	Again time.Duration
}

// Over is the outcome of a ticket that is gone or not needed any more.
type Over struct {
	Operation ledger.Operation
	Result    Result
}

// Result is the outcome of a ticket.
type Result string

// Made is not of Decide: a ticket was made.
const (
	Made       Result = "made"
	Done       Result = "done"       // the operation ended, or got further
	Unfinished Result = "unfinished" // it did not, though the ticket had the volume
	Waited     Result = "waited"     // the ticket never had the volume
)

// Trouble is why an operation has no ticket, or a waiting one.
type Trouble struct {
	Told    Object
	Code    string // the arbiter's, or this package's
	Message string
}

// The codes of this package's troubles (docs/reasons.md).
const (
	ReasonOutside   = "CloneOutside"
	ReasonMixed     = "GroupMixed"
	ReasonApart     = "GroupAtSeveralNodes"
	ReasonPaused    = "OperationPaused"
	ReasonTooMany   = "TooManyOperations"
	ReasonNameTaken = "TicketNameTaken"
	// ReasonRefused: the API server refuses the ticket.
	ReasonRefused = "TicketNotMade"
)

// key identifies the unit of a ticket: one operation of one volume, or of one set.
type key struct {
	operation ledger.Operation
	volumes   string
}

// want is a ticket that should be there.
type want struct {
	Make
	key      key
	work     *Work
	progress int64 // changes with the operation's progress
	existing *Ticket
}

// Decide says which tickets are made and ended now. It is pure.
func (s State) Decide() Plan {
	d := decision{
		State: s, plan: Plan{Past: maps.Clone(s.Past)}, count: map[string]int{}, keys: map[string]key{},
		byName: map[ledger.TicketID]*Ticket{}, foreign: map[string]bool{}, snapshots: map[string]bool{},
	}
	if d.plan.Past == nil {
		d.plan.Past = Past{}
	}
	for p := range s.Snapshot.Policies() {
		d.asked |= p.AttachFor | p.DetachFor
		if (p.AttachFor | p.DetachFor).Has(ledger.OperationSnapshot) {
			d.snapshots[p.Driver] = true
		}
	}
	for i := range s.Tickets {
		t := &d.Tickets[i]
		d.byName[t.ID] = t
		if t.ID.Namespace != s.Namespace {
			d.count[t.ID.Namespace]++
		}
	}
	for t := range s.Snapshot.Tickets() {
		if d.byName[t.ID] == nil && MayBe(t.ID, t.Type) {
			d.count[t.ID.Namespace]++ // its label was taken off, or a user has chosen its name
		}
	}
	wants := d.wants()
	for _, list := range wants {
		for i := range list {
			if w := &list[i]; w.existing != nil && w.ID.Namespace == s.Namespace {
				d.count[d.payer(w)]++
			}
		}
	}
	d.remember(wants)
	kept := d.choose(wants)
	d.end(kept)
	d.forget(wants)
	d.plan.Troubles = tellable(d.plan.Troubles)
	return d.plan
}

type decision struct {
	State
	plan  Plan
	asked ledger.Operations // operations for which a policy wants tickets
	// snapshots are the drivers whose snapshots need tickets by a policy.
	snapshots map[string]bool
	count     map[string]int // tickets by payer
	byName    map[ledger.TicketID]*Ticket
	// foreign are other owners' tickets, by UID, with a wanted name.
	foreign map[string]bool
	keys    map[string]key // of the last tickets, by UID
	// making has keys with a new ticket. The earlier ticket stays until that exists, so that the volume
	// does not move in between.
	making map[key]bool
}

// payer is the namespace that a ticket counts for; in Moorage's own, the asking namespace.
func (d *decision) payer(w *want) string {
	if w.ID.Namespace == d.Namespace {
		return w.ID.Namespace + "/" + w.work.Told.Namespace
	}
	return w.ID.Namespace
}

func (d *decision) trouble(of *Work, code, message string) {
	d.plan.Troubles = append(d.plan.Troubles, Trouble{Told: of.Told, Code: code, Message: message})
}

func (d *decision) again(after time.Duration) {
	if after = max(after, time.Millisecond); d.plan.Again == 0 || after < d.plan.Again {
		d.plan.Again = after
	}
}

// tellable are a bounded number of each namespace's troubles. The next are told when these are over.
func tellable(all []Trouble) []Trouble {
	slices.SortFunc(all, func(a, b Trouble) int {
		return cmp.Or(cmp.Compare(a.Told.Namespace, b.Told.Namespace), cmp.Compare(a.Told.UID, b.Told.UID), cmp.Compare(a.Code, b.Code))
	})
	count := map[string]int{}
	return slices.DeleteFunc(all, func(t Trouble) bool {
		count[t.Told.Namespace]++
		return count[t.Told.Namespace] > MaxPerNamespace
	})
}

func (d *decision) wants() map[key][]want {
	all := map[key][]want{}
	for _, work := range d.share() {
		if w, ok := d.want(work); ok {
			if t := d.byName[w.ID]; t != nil && t.Owner.Kind == w.Owner.Kind && t.Owner.Name == w.Owner.Name {
				w.existing = t
			} else if t != nil {
				d.foreign[t.UID] = true
			}
			all[w.key] = append(all[w.key], w)
		}
	}
	for _, list := range all {
		slices.SortFunc(list, func(a, b want) int {
			return cmp.Or(cmp.Compare(a.work.Created, b.work.Created), cmp.Compare(a.Owner.UID, b.Owner.UID))
		})
	}
	return all
}

// choose returns the tickets that stay, one for each key.
func (d *decision) choose(wants map[key][]want) map[string]bool {
	kept := map[string]bool{}
	d.making = map[key]bool{}
	var missing []want
	for _, list := range wants {
		if i := slices.IndexFunc(list, func(w want) bool { return w.existing != nil && !w.existing.Deleting }); i >= 0 {
			d.keep(list[i], kept)
			continue
		}
		missing = append(missing, list[0])
	}
	slices.SortFunc(missing, func(a, b want) int {
		return cmp.Or(cmp.Compare(a.work.Created, b.work.Created), cmp.Compare(a.Owner.UID, b.Owner.UID))
	})
	for i := range missing {
		d.make(&missing[i])
	}
	return kept
}

func (d *decision) keep(w want, kept map[string]bool) {
	t := w.existing
	past := d.plan.Past[w.key]
	if !same(t.Spec, w.Spec) || past.hopeless(t, w.work) || d.late(t, past) {
		return
	}
	kept[t.UID] = true
	if t.Granted || t.Reason == "" || t.Reason == v1alpha1.ReasonPending {
		return
	}
	if at := d.apart(w.work); at != "" && t.Spec.Wherever {
		d.trouble(w.work, ReasonApart, fmt.Sprintf("ticket %s waits: volumes of the group are at several nodes (%s), and one ticket can have them at one node only. The driver finds each attached where it is; a volume that is at no node needs a pod or a ticket of its own, or the others at one node", t.ID, at))
		return
	}
	if age := d.Now.Sub(t.Created); age < patience {
		d.again(patience - age)
		return
	}
	d.trouble(w.work, t.Reason, fmt.Sprintf("ticket %s waits: %s", t.ID, t.Message))
}

// late: the ticket should have ended by its own time, which was changed or renewed.
func (d *decision) late(t *Ticket, past attempt) bool {
	if past.ticket != t.UID {
		return false
	}
	left := Timeout + patience - d.Now.Sub(t.Created)
	if left > 0 && time.Duration(*t.Spec.TTLSeconds)*time.Second > Timeout {
		d.again(left)
	}
	return left <= 0
}

func (d *decision) make(w *want) {
	if w.existing != nil { // it is being deleted
		return
	}
	if d.Snapshot.Ticket(w.ID) != nil || d.byName[w.ID] != nil {
		d.trouble(w.work, ReasonNameTaken, fmt.Sprintf("ticket %s is somebody else's: delete it, so that Moorage can make its own", w.ID))
		return
	}
	past := d.plan.Past[w.key]
	if other := d.bare(past); other != nil {
		d.trouble(w.work, ReasonNameTaken, fmt.Sprintf("ticket %s, which Moorage has made and which is not marked as that any more, is for the same volume: delete it", other.ID))
		return
	}
	if d.Now.Before(past.Not) {
		d.again(past.Not.Sub(d.Now))
		if past.Failures > 0 {
			d.trouble(w.work, ReasonPaused, fmt.Sprintf("the volume is left to others until %s: %s, and it did not come to its end while it had the volume",
				past.Not.UTC().Format(time.RFC3339), w.Why()))
		}
		return
	}
	if d.count[d.payer(w)] >= MaxPerNamespace {
		d.trouble(w.work, ReasonTooMany, fmt.Sprintf("%s, and namespace %s has %d tickets for operations already: it waits until one of them ends", w.Why(), w.work.Told.Namespace, MaxPerNamespace))
		return
	}
	d.count[d.payer(w)]++
	d.making[w.key] = true
	d.plan.Make = append(d.plan.Make, w.Make)
}

// end ends a bounded number of unneeded tickets, so that no namespace holds up another.
func (d *decision) end(kept map[string]bool) {
	ended := map[string]int{}
	for _, t := range d.oldest() {
		if kept[t.UID] || t.Deleting || d.foreign[t.UID] || d.unknown(t) {
			continue
		}
		if k, ok := d.keys[t.UID]; ok && d.making[k] {
			d.again(time.Second)
			continue
		}
		if ended[t.ID.Namespace]++; ended[t.ID.Namespace] > MaxPerNamespace {
			d.again(time.Second)
			continue
		}
		d.plan.End = append(d.plan.End, *t)
	}
}

func (d *decision) oldest() []*Ticket {
	var list []*Ticket
	for i := range d.Tickets {
		list = append(list, &d.Tickets[i])
	}
	slices.SortFunc(list, func(a, b *Ticket) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
	})
	return list
}

// unknown: the object behind a ticket's operation can't be seen. That matters only if a policy asks for its
// tickets.
func (d *decision) unknown(t *Ticket) bool {
	return d.Unknown[t.Owner.Kind] && d.asked.Has(t.Operation)
}

// want is the ticket for an operation; false where none is due.
func (d *decision) want(w *Work) (want, bool) {
	if w.IsOver(d.Snapshot) {
		return want{}, false
	}
	var volumes []volume
	var ok bool
	var progress int64
	switch w.Operation {
	case ledger.OperationSnapshot:
		volumes, ok = d.ofHandles(w)
		if w.Cut {
			progress = 1
		}
	case ledger.OperationClone:
		volumes, ok = d.ofClone(w)
	case ledger.OperationExpansion:
		if volumes, ok = d.ofClaim(w.Claim); ok {
			progress = d.Snapshot.PersistentVolume(volumes[0].pv).Capacity
		}
	}
	if !ok {
		return want{}, false
	}
	volumes, detached, ok := d.due(w, volumes)
	if !ok {
		return want{}, false
	}
	made := want{work: w, progress: progress, key: key{w.Operation, volumes[0].pv}}
	made.Make = Make{
		ID:        ledger.TicketID{Namespace: volumes[0].namespace, Name: nameOf(w.Operation, w.Object)},
		Operation: w.Operation, Owner: w.Object, Told: w.Told, Driver: volumes[0].driver,
		Spec: v1alpha1.VolumeTicketSpec{
			Type: v1alpha1.TicketType(w.Operation.TicketType()), Wherever: !detached, Detached: detached,
			TTLSeconds: new(int64(Timeout / time.Second)),
		},
	}
	sum := fnv.New64a()
	for _, v := range volumes {
		made.Spec.Volumes = append(made.Spec.Volumes, v.of)
		_, _ = sum.Write([]byte(v.pv + "\x00"))
	}
	if w.Group {
		made.key.volumes = fmt.Sprintf("group/%016x", sum.Sum64())
	}
	return made, true
}
