// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

var disk = ledger.VolumeID{Driver: driver, Handle: "a"}

const outlast = 20 * time.Second

type reply struct {
	Answer
	after time.Duration
}

func replies(result Result, facts ...ledger.Event) reply { return reply{Answer{result, facts}, 0} }

type player struct {
	memory *Memory
	ledger *ledger.Ledger
	now    time.Time
	lines  []string
	last   Task // in its last state
}

func newPlayer(events ...ledger.Event) *player {
	return &player{memory: &Memory{Epoch: 7, Outlast: outlast}, ledger: facts(events...), now: now}
}

func (p *player) play(t *testing.T, task Task, list ...reply) []string {
	t.Helper()
	p.lines = nil
	task, m := p.memory.Next(task, p.ledger.Snapshot(), p.now)
	for range 50 {
		for _, e := range m.Tell {
			p.lines = append(p.lines, "tell "+strings.TrimPrefix(fmt.Sprintf("%T", e), "ledger."))
			p.ledger.Apply(p.now, e)
		}
		switch {
		case m.End != Going:
			p.lines = append(p.lines, m.End.String())
			if len(list) > 0 {
				t.Errorf("%d replies are left", len(list))
			}
			p.last = task
			return p.lines
		case m.Send != nil && len(list) == 0:
			t.Fatalf("no reply to %s", text(*m.Send))
		case m.Send != nil:
			p.lines = append(p.lines, text(*m.Send))
			p.now = p.now.Add(list[0].after)
			for _, e := range list[0].Facts {
				p.ledger.Apply(p.now, e)
			}
			task, m = p.memory.Answer(task, list[0].Answer, p.ledger.Snapshot(), p.now)
			list = list[1:]
		case !m.Wait.IsZero():
			p.lines = append(p.lines, "wait "+m.Wait.Sub(p.now).String())
			p.now = m.Wait
			task, m = p.memory.Next(task, p.ledger.Snapshot(), p.now)
		default:
			task, m = p.memory.Next(task, p.ledger.Snapshot(), p.now)
		}
	}
	t.Fatalf("the task does not end: %v", p.lines)
	return nil
}

func text(r Request) string {
	words := []string{r.Kind.String()}
	if r.Object != 0 {
		words = append(words, r.Object.String())
	}
	switch r.Kind {
	case rules.GetObject, rules.DecideTicket:
		words = append(words, r.Key)
	case rules.ListPods:
		words = append(words, string(r.Node))
	case rules.PatchNode:
		c := r.Change
		words = append(words, fmt.Sprintf("%s add=%t uid=%s", r.Node, c.Add, c.NodeUID))
		if c.Rule != "" {
			words = append(words, c.Rule+"@"+c.Version)
		}
		return strings.Join(words, " ")
	default: // the preconditions are enough
	}
	if r.Kind == rules.DecideTicket {
		words = append(words, r.Phase.String(), fmt.Sprintf("epoch=%d", r.Epoch))
	}
	if r.UID != "" {
		words = append(words, "uid="+r.UID)
	}
	if r.Version != "" {
		words = append(words, "version="+r.Version)
	}
	return strings.Join(words, " ")
}

func check(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("it does\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func attachment(version string, change ...func(*ledger.Attachment)) ledger.Attachment {
	a := ledger.Attachment{
		Name: ledger.AttachmentName(disk, "n1"), UID: "va", Version: version, Driver: driver, Node: "n1",
		PersistentVolume: "a", Ours: true, Attached: true,
	}
	for _, c := range change {
		c(&a)
	}
	return a
}

func node(version string, change ...func(*ledger.NodeState)) ledger.NodeState {
	n := ledger.NodeState{Name: "n1", UID: "n", Version: version, Ready: ledger.ReadyTrue, Managed: true, Reporting: true}
	for _, c := range change {
		c(&n)
	}
	return n
}

func silent(n *ledger.NodeState) { n.Ready = ledger.ReadyUnknown }
func tainted(n *ledger.NodeState) {
	n.Ready, n.OutOfService = ledger.ReadyUnknown, true
}

func step(do rules.Kind, change ...func(*rules.Step)) rules.Step {
	s := rules.Step{
		Kind: do, Volume: disk, Node: "n1", NodeUID: "n", NodeVersion: "1",
		Attachment: ledger.AttachmentName(disk, "n1"), UID: "va", Version: "5", PV: "a",
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

func byForce(s *rules.Step) { s.Rule = rules.AfterPodGone }
func noNode(s *rules.Step)  { s.NodeUID, s.NodeVersion = "", "" }
func successor(machine string) func(*rules.Step) {
	return func(s *rules.Step) { s.Successor = machine }
}
func names(machine string) func(*ledger.NodeState) {
	return func(n *ledger.NodeState) { n.SystemUUID = machine }
}
func inASecond(s *rules.Step) { s.Within = time.Second }

var name = ledger.AttachmentName(disk, "n1")

func TestFailuresAreNamed(t *testing.T) {
	for result, want := range map[Result]string{Refused: "refused", NotSent: "not sent", Unknown: "unknown"} {
		p := newPlayer(attachment("5"))
		task, _ := p.memory.Next(Do(step(rules.DeleteAttachment)), p.ledger.Snapshot(), now)
		_, m := p.memory.Answer(task, Answer{Result: result}, p.ledger.Snapshot(), now)
		if m.Why != "delete-attachment "+name+": "+want {
			t.Errorf("it fails with %q", m.Why)
		}
	}
}
