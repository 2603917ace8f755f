// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/alloctest"
)

func nowhere(claims int) ledger.Pod {
	p := pod("nowhere", "n1")
	p.Namespace = "tenant"
	for i := range claims {
		name := fmt.Sprintf("no%05d", i)
		p.Volumes = append(p.Volumes, ledger.PodVolume{Name: name, Claim: name})
	}
	return p
}

// each is a request's time; objects that are read one by one do not exist.
func confirm(t *testing.T, task Task, tenant ledger.Pod, each time.Duration, before ...ledger.Event) (requests int, end End) {
	t.Helper()
	p := newPlayer(append([]ledger.Event{attachment("5"), tenant}, before...)...)
	task, m := p.memory.Next(task, p.ledger.Snapshot(), p.now)
	for {
		for _, e := range m.Tell {
			p.ledger.Apply(p.now, e)
		}
		switch {
		case m.End != Going:
			return requests, m.End
		case m.Send == nil:
			task, m = p.memory.Next(task, p.ledger.Snapshot(), p.now)
			continue
		}
		requests++
		p.now = p.now.Add(each)
		answer := Answer{Result: Done}
		if m.Send.Kind == rules.GetObject {
			answer.Result = NotFound
		} else if m.Send.Kind == rules.ListPods {
			answer.Facts = []ledger.Event{tenant}
		}
		task, m = p.memory.Answer(task, answer, p.ledger.Snapshot(), p.now)
	}
}

func TestClaimsOfOthersCostADetachNoRequests(t *testing.T) {
	const most = 64
	requests, end := confirm(t, Do(step(rules.ConfirmUnwanted)), nowhere(2000), 0)
	if requests > most || end != Finished {
		t.Errorf("a detach takes %d requests, one after the other, for one pod of another namespace (%s); want %d at most", requests, end, most)
	}
}

// The cost is linear in the node's claims.
func TestClaimsOfOthersCostADetachInProportion(t *testing.T) {
	const few, times, most = 100, 8, 14
	cost := func(claims int) float64 {
		tenant := nowhere(claims)
		return float64(alloctest.Bytes(func() { confirm(t, Do(step(rules.ConfirmUnwanted)), tenant, 0) }))
	}
	small, large := cost(few), cost(times*few)
	if large > most*small {
		t.Errorf("%d claims that lead nowhere take %.0f KiB, and %d of them %.1f times as much; want %d times at most", few, small/1024, times*few, large/small, most)
	}
}

// A detach has 400 ms after its list of pods (rules.besideWindow).
func TestClaimsOfOthersKeepNoDetachFromItsWindow(t *testing.T) {
	within := func(s *rules.Step) { s.Within = 400 * time.Millisecond }
	drop := step(rules.DeleteAttachment, within)
	if _, end := confirm(t, Do(drop), nowhere(200), 3*time.Millisecond, unreported(drop), unwanted(drop)); end != Finished {
		t.Error("a pod of another namespace keeps the volume attached for as long as the pod is there")
	}
}

func TestListedClaimMayLeadToTheVolume(t *testing.T) {
	tenant := nowhere(2 * maxClaimReads)
	claim := ledger.ClaimKey{Namespace: "tenant", Name: tenant.Volumes[maxClaimReads].Claim}
	p := newPlayer(attachment("5"), tenant)
	lines := p.play(t, Do(step(rules.ConfirmUnwanted)),
		replies(Done, tenant),
		replies(Done, ledger.Claim{Key: claim, UID: "c", Version: "7", PersistentVolume: "again", Bound: true}),
		replies(Done, ledger.PersistentVolume{Name: "again", Version: "8", Volume: disk, Claim: claim}))
	if slices.Contains(lines, "tell Unwanted") || !slices.Contains(lines, Finished.String()) {
		t.Errorf("a pod of its node wants the volume: %q", lines)
	}
}
