// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"slices"
	"time"
)

// A frequent short state is written only after this: writes cost, and kube-controller-manager backs off on
// errors.
const (
	missingGrace = time.Second
	blockedGrace = 20 * time.Second
	// ghostGrace is how long an unwanted volume may be at a node without an attachment.
	ghostGrace = 2 * time.Minute
)

type move struct {
	do     Action
	nodeID string
	detach bool
	why    Reason
	// after is how long why lasts before it is shown.
	after time.Duration
	// wake is when time alone changes the move.
	wake time.Time
}

func do(a Action) move { return move{do: a} }

type pass struct {
	*Tracker
	together
	v     *volume
	now   time.Time
	steps []Step
	wake  time.Time
}

// Next returns a volume's steps, which may run in parallel, and when to call again without news (zero:
// never). A step counts as begun after Start; an unstarted step is offered again.
func (b *Tracker) Next(id VolumeID, now time.Time) (steps []Step, wake time.Time) {
	v := b.volumes[id]
	if v == nil {
		return nil, time.Time{}
	}
	p := &pass{Tracker: b, v: v, now: now}
	p.survey()
	p.adopt()
	for r := range p.each(slices.Values(v.records)) {
		if r.running == 0 {
			p.decide(r)
		}
	}
	return p.steps, p.wake
}

func (p *pass) decide(r *record) {
	var m move
	switch {
	case !p.rules.Publishes:
		m = p.note(r)
	case r.gone:
		m = p.ghost(r)
		m.detach = true
	case r.Deleting:
		m = p.detach(r)
		m.detach = true
	default:
		m = p.attach(r)
	}
	if m.do != 0 {
		p.add(r, m)
		return
	}
	p.sleep(m.wake)
	p.show(r, m)
}

func (p *pass) add(r *record, m move) {
	step := Step{Do: m.do, Volume: p.v.id, Name: r.Name, UID: r.UID, NodeID: m.nodeID, Reason: m.why, Detach: m.detach}
	if m.do == MarkAttached {
		step.Context = r.context
	}
	if m.do.Call() {
		p.called[r.Node] = true
	}
	p.steps = append(p.steps, step)
}

func (p *pass) sleep(until time.Time) {
	if !until.IsZero() && (p.wake.IsZero() || until.Before(p.wake)) {
		p.wake = until
	}
}

// show writes why an attachment waits, once it lasts, unless the object says it already.
func (p *pass) show(r *record, m move) {
	if m.why != r.shown {
		r.shown, r.shownSince, r.told, r.unshown, r.showAgain = m.why, p.now, false, 0, time.Time{}
	}
	report, written := ReportAttach, r.AttachError
	if r.Deleting {
		report, written = ReportDetach, r.DetachError
	}
	if m.why.IsZero() || m.why == written || r.told || r.gone {
		return
	}
	due := r.shownSince.Add(m.after)
	if r.showAgain.After(due) {
		due = r.showAgain
	}
	if due.After(p.now) {
		p.sleep(due)
		return
	}
	p.add(r, move{do: report, why: m.why})
}

func (p *pass) backoff(r *record, detach bool) (move, bool) {
	if r.waiting(detach, p.now) <= 0 {
		return move{}, false
	}
	return move{why: r.cause, wake: r.until}, true
}

// note marks attachments as attached if the driver has no ControllerPublishVolume. It leaves finalizers
// alone.
func (p *pass) note(r *record) move {
	if r.Attached || r.Deleting {
		return move{}
	}
	if m, ok := p.backoff(r, false); ok {
		return m
	}
	return do(MarkAttached)
}

// busy: a call excludes this one: any call for an exclusive volume, else a call at the same node. (CSI's
// one call per volume would take for ever for a shared volume at many nodes; stock attachers never obeyed.)
func (p *pass) busy(r *record) bool {
	return p.called[r.Node] || p.exclusive && len(p.called) > 0
}

// call first reads the Secret that the call needs.
func (p *pass) call(r *record, a Action, nodeID string) move {
	switch {
	case p.busy(r):
		return move{}
	case r.NeedsSecret && !r.secret && a != Look:
		return do(ReadSecret)
	}
	return move{do: a, nodeID: nodeID}
}
