// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"time"
)

func (NoForceOnTimeout) apply(l *Ledger, _ time.Time, _ *Touched) { l.facts.noForceOnTimeout = true }

func (Complete) apply(l *Ledger, now time.Time, t *Touched) {
	if !l.facts.complete.IsZero() {
		return
	}
	l.facts.complete = now
	var measured []VolumeID
	for v := range l.facts.volumes.all() {
		if v.earlier != nil {
			measured = append(measured, v.ID)
		}
	}
	for _, id := range measured {
		rec := l.volume(id)
		rec.earlier = &earlier{rec.earlier.force, now}
	}
	var timed []NodeName
	for n := range l.facts.nodes.all() {
		if !n.NotReady.IsZero() || !n.MachineAt.IsZero() {
			timed = append(timed, n.Name)
		}
	}
	for _, name := range timed {
		rec := l.node(name)
		for _, since := range []*time.Time{&rec.NotReady, &rec.OutOfServiceAt, &rec.ShutdownAt, &rec.MachineAt} {
			if !since.IsZero() {
				*since = now
			}
		}
		rec.FencedAt = slices.Clone(rec.FencedAt)
		for i := range rec.FencedAt {
			rec.FencedAt[i].At = now
		}
	}
	l.forgetLifted()
	l.matchAll(now, t)
	l.findUses(now, t)
}

// findUses finds volumes of pods whose claims lead nowhere, or led elsewhere at the start.
func (l *Ledger) findUses(now time.Time, t *Touched) {
	var lost []string
	for p := range l.facts.pods.all() {
		if slices.ContainsFunc(p.at, VolumeID.IsZero) {
			lost = append(lost, p.UID)
		}
	}
	for _, uid := range lost {
		l.updatePodVolumes(now, t, uid)
	}
}
