// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

func (p *player) sent() bool {
	place := p.ledger.Snapshot().Volume(disk).OnNode("n1")
	return place != nil && place.Sent
}

func TestCreateAttachment(t *testing.T) {
	other := attachment("6", func(a *ledger.Attachment) { a.Driver = "somebody.else" })
	for name, test := range map[string]struct {
		replies []reply
		want    []string
		sent    bool // still
	}{
		"created": {[]reply{replies(Done, attachment("5"))},
			[]string{"create-attachment", "tell AttachResolved", "finished"}, false},
		"there already": {[]reply{replies(Exists), replies(Done, attachment("5"))},
			[]string{"create-attachment", "get attachments " + name, "tell AttachResolved", "finished"}, false},
		"another one is there": {[]reply{replies(Exists), replies(Done, other)},
			[]string{"create-attachment", "get attachments " + name, "tell AttachResolved", "failed"}, false},
		"refused for good": {[]reply{replies(Refused)},
			[]string{"create-attachment", "tell AttachResolved", "failed"}, false},
		"not sent": {[]reply{replies(NotSent)},
			[]string{"create-attachment", "tell AttachResolved", "failed"}, false},
		"no pod names the inline volume any more": {[]reply{replies(Unfit)},
			[]string{"create-attachment", "tell AttachResolved", "stale"}, false},
		"no answer, and it is there": {[]reply{replies(Unknown), replies(Done, attachment("5"))},
			[]string{"create-attachment", "wait 20s", "get attachments " + name, "tell AttachResolved", "finished"}, false},
		"no answer, and it is not there": {[]reply{replies(Unknown), replies(NotFound)},
			[]string{"create-attachment", "wait 20s", "get attachments " + name, "tell AttachResolved", "failed"}, false},
		"no answer, and none to the look for it": {[]reply{replies(Unknown), replies(Unknown)},
			[]string{"create-attachment", "wait 20s", "get attachments " + name, "failed"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(pod("p", "n1", "a"))
			got := p.play(t, Do(step(rules.CreateAttachment)), test.replies...)
			check(t, got, append([]string{"tell AttachSent"}, test.want...)...)
			if p.sent() != test.sent {
				t.Errorf("counted as under way: %t", p.sent())
			}
		})
	}
}

func TestCreationForNobody(t *testing.T) {
	p := newPlayer()
	check(t, p.play(t, Do(step(rules.CreateAttachment))), "tell AttachSent", "stale")
	p = newPlayer(ticket("p", "n1", ledger.TypeManual, "a")) // a pending ticket keeps no slot
	check(t, p.play(t, Do(step(rules.CreateAttachment))), "tell AttachSent", "stale")
}

// external-attacher expects the PersistentVolume or an inline volume.
func TestCreatedAttachment(t *testing.T) {
	mounts := pod("p", "n1", "a")
	mounts.Volumes = append(mounts.Volumes, ledger.PodVolume{Name: "cache", Inline: ledger.VolumeID{Driver: driver, Handle: "i"}})
	inline := func(s *rules.Step) { s.PV, s.Volume.Handle = "", "i" }
	for name, test := range map[string]struct {
		step rules.Step
		want ledger.Attachment
	}{
		"of a PersistentVolume": {step(rules.CreateAttachment, func(s *rules.Step) { s.Transitions, s.NodeID, s.Beside = 3, "i-1", "n2" }),
			ledger.Attachment{Name: name, Driver: driver, Node: "n1", PersistentVolume: "a", Ours: true, Transitions: 3, NodeID: "i-1"}},
		"inline": {step(rules.CreateAttachment, inline),
			ledger.Attachment{Name: name, Driver: driver, Node: "n1", Inline: ledger.VolumeID{Driver: driver, Handle: "i"}, Ours: true}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(mounts)
			p.play(t, Do(test.step), replies(Refused))
			if got := p.last.Sent; got.Fact != ledger.Event(test.want) || got.Beside != test.step.Beside || got.Key != test.step.Attachment {
				t.Errorf("created %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestWhatHasTheNameAlready(t *testing.T) {
	other := ledger.VolumeID{Driver: driver, Handle: "z"}
	inline := func(s *rules.Step) { s.PV = "" }
	of := func(change func(*ledger.Attachment)) ledger.Attachment { return attachment("5", change) }
	for name, test := range map[string]struct {
		step  rules.Step
		found ledger.Attachment
		want  bool
	}{
		"by another PersistentVolume of the disk": {step(rules.CreateAttachment), of(func(a *ledger.Attachment) { a.PersistentVolume = "again" }), true},
		"of another driver":                       {step(rules.CreateAttachment), of(func(a *ledger.Attachment) { a.Driver = "z" }), false},
		"at another node":                         {step(rules.CreateAttachment), of(func(a *ledger.Attachment) { a.Node = "n2" }), false},
		"of an inline volume":                     {step(rules.CreateAttachment), of(func(a *ledger.Attachment) { a.PersistentVolume, a.Inline = "", disk }), false},
		"the inline volume":                       {step(rules.CreateAttachment, inline), of(func(a *ledger.Attachment) { a.PersistentVolume, a.Inline = "", disk }), true},
		"another inline volume":                   {step(rules.CreateAttachment, inline), of(func(a *ledger.Attachment) { a.PersistentVolume, a.Inline = "", other }), false},
		"of a PersistentVolume":                   {step(rules.CreateAttachment, inline), of(func(a *ledger.Attachment) {}), false},
	} {
		t.Run(name, func(t *testing.T) {
			want := map[bool]string{true: "finished", false: "failed"}[test.want]
			got := newPlayer(pod("p", "n1", "a")).play(t, Do(test.step), replies(Exists), replies(Done, test.found))
			check(t, got[len(got)-1:], want)
		})
	}
}

func TestFindAttachment(t *testing.T) {
	for name, test := range map[string]struct {
		reply reply
		want  []string
	}{
		"it is there":     {replies(Done, attachment("5")), []string{"tell AttachResolved", "finished"}},
		"it is not there": {replies(NotFound), []string{"tell AttachResolved", "finished"}},
		"it is another":   {replies(Done, attachment("5", func(a *ledger.Attachment) { a.Driver = "z" })), []string{"tell AttachResolved", "finished"}},
		"no answer":       {replies(Unknown), []string{"failed"}},
	} {
		p := newPlayer(pod("p", "n1", "a"), ledger.AttachSent{Volume: disk, Node: "n1"})
		t.Run(name, func(t *testing.T) {
			got := p.play(t, Do(step(rules.FindAttachment)), test.reply)
			check(t, got, append([]string{"get attachments " + ledger.AttachmentName(disk, "n1")}, test.want...)...)
		})
	}
}

func TestReport(t *testing.T) {
	confirm, sent, patch := "confirm-attachment uid=va", "tell ReportSent", "patch-node n1 add=true uid=n"
	detached := attachment("6", func(a *ledger.Attachment) { a.Attached = false })
	leaving := attachment("6", func(a *ledger.Attachment) { a.Deleting = true })
	for name, test := range map[string]struct {
		replies []reply
		want    []string
	}{
		"confirmed, and written": {[]reply{replies(Done, attachment("6")), replies(Done, node("2"))},
			[]string{confirm, sent, patch, "finished"}},
		"gone":              {[]reply{replies(NotFound)}, []string{confirm, "stale"}},
		"another one":       {[]reply{replies(Conflict)}, []string{confirm, "stale"}},
		"not attached":      {[]reply{replies(Done, detached)}, []string{confirm, "stale"}},
		"made again":        {[]reply{replies(Done, attachment("6", func(a *ledger.Attachment) { a.UID = "another" }))}, []string{confirm, "stale"}},
		"the Node is gone":  {[]reply{replies(Done, attachment("6")), replies(NotFound), replies(NotFound)}, []string{confirm, sent, patch, "get nodes n1", "stale"}},
		"nor to the read":   {[]reply{replies(Done, attachment("6")), replies(Conflict), replies(Unknown)}, []string{confirm, sent, patch, "get nodes n1", "failed"}},
		"refused for good":  {[]reply{replies(Done, attachment("6")), replies(Refused)}, []string{confirm, sent, patch, "failed"}},
		"being deleted":     {[]reply{replies(Done, leaving)}, []string{confirm, "stale"}},
		"no answer to that": {[]reply{replies(Unknown)}, []string{confirm, "failed"}},
		"the Node is another": {[]reply{replies(Done, attachment("6")), replies(Conflict), replies(Done, node("2"))},
			[]string{confirm, sent, patch, "get nodes n1", "stale"}},
		"stale before it is sent": {[]reply{replies(Done, attachment("6")), replies(Unfit)},
			[]string{confirm, sent, patch, "stale"}},
		"no answer": {[]reply{replies(Done, attachment("6")), replies(Unknown), replies(Done, node("2"))},
			[]string{confirm, sent, patch, "wait 20s", "get nodes n1", "stale"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(pod("p", "n1", "a"), attachment("5"))
			check(t, p.play(t, Do(step(rules.Report)), test.replies...), test.want...)
		})
	}
}

// The kubelet waits for nothing else: a late iSCSI or FC entry must be outlasted.
func TestReportWithoutAttachment(t *testing.T) {
	s := step(rules.Report)
	s.Attachment, s.UID, s.Version = "", "", ""
	sent, patch := "tell ReportSent", "patch-node n1 add=true uid=n"
	check(t, newPlayer(pod("p", "n1", "a")).play(t, Do(s), replies(Done, node("2"))), sent, patch, "finished")
	check(t, newPlayer(pod("p", "n1", "a")).play(t, Do(s), replies(Unknown), replies(Done, node("2"))), sent, patch, "wait 20s", "get nodes n1", "stale")
}

// A confirmation lasts until this process sends a DELETE.
func TestConfirmedIsRemembered(t *testing.T) {
	sent, patch := "tell ReportSent", "patch-node n1 add=true uid=n"
	p := newPlayer(pod("p", "n1", "a"))
	p.play(t, Do(step(rules.CreateAttachment)), replies(Done, attachment("5")))
	check(t, p.play(t, Do(step(rules.Report)), replies(Done, node("2"))), sent, patch, "finished")
	other := p.memory.Clone()
	p.play(t, Do(step(rules.DeleteAttachment)), replies(Unknown))
	check(t, p.play(t, Do(step(rules.Report)), replies(Done, attachment("6")), replies(Done, node("3"))),
		"confirm-attachment uid=va", sent, patch, "finished")
	p.memory.Prune(p.ledger.Snapshot())
	if !p.memory.Confirmed("va") || !other.Confirmed("va") {
		t.Error("it is forgotten")
	}
	p.play(t, Do(step(rules.DeleteAttachment)), replies(Unknown))
	if p.memory.Confirmed("va") || !other.Confirmed("va") {
		t.Error("a DELETE that was sent is none, or another Memory has sent it, too")
	}
	p.play(t, Do(step(rules.Report)), replies(Done, attachment("7")), replies(Done, node("3")))
	p.ledger.Apply(p.now, ledger.AttachmentGone{Name: name})
	p.memory.Prune(p.ledger.Snapshot())
	if p.memory.Confirmed("va") || !other.Confirmed("va") {
		t.Error("what is gone is remembered, or another Memory has forgotten it")
	}
}

func TestCloneIsItsOwn(t *testing.T) {
	p := newPlayer(pod("p", "n1", "a"), attachment("5"))
	p.play(t, Do(step(rules.Report)), replies(Done, attachment("6")), replies(Done, node("2")))
	other := p.memory.Clone()
	p.play(t, Do(step(rules.DeleteAttachment)), replies(Unknown))
	if p.memory.Confirmed("va") || !other.Confirmed("va") {
		t.Error("a DELETE that one has sent is sent by the other, or by none")
	}
	second := &player{memory: other, ledger: p.ledger, now: now}
	for _, task := range other.TakeOver(p.ledger.Snapshot()) {
		second.play(t, task, replies(Done))
	}
	if mine, others := len(p.memory.TakeOver(p.ledger.Snapshot())), len(other.TakeOver(p.ledger.Snapshot())); mine != 4 || others != 1 {
		t.Errorf("to take over are %d and %d tasks, want four lists, and after these the doubts", mine, others)
	}
}

func TestMarkWanted(t *testing.T) {
	for result, want := range map[Result]string{Done: "finished", NotFound: "stale", Conflict: "stale", Unknown: "failed", Refused: "failed"} {
		p := newPlayer(attachment("5"))
		check(t, p.play(t, Do(step(rules.MarkWanted)), replies(result)), "mark-wanted uid=va", want)
		p = newPlayer(attachment("5"))
		check(t, p.play(t, Do(step(rules.RetryAttach)), replies(result)), "confirm-attachment uid=va", want)
		if p.memory.Confirmed("va") {
			t.Error("a failed attach is no proof that the attachment is there to stay")
		}
	}
}

// A driver must not answer unasked requests.
func TestUnknownSteps(t *testing.T) {
	m := &Memory{Outlast: time.Second}
	s := ledger.New().Snapshot()
	if _, next := m.Next(Do(rules.Step{Kind: 99}), s, now); next.End != Failed || next.Why == "" {
		t.Errorf("a step that is not known: %+v", next)
	}
	if _, next := m.Answer(Do(step(rules.Report)), Answer{Result: Done}, s, now); next.End != Failed || next.Send != nil {
		t.Errorf("an answer to no request: %+v", next)
	}
	task, _ := m.Next(Do(step(rules.Report)), s, now)
	if _, next := m.Answer(task, Answer{}, s, now); next.End != Failed || next.Send != nil {
		t.Errorf("an answer without a result: %+v", next)
	}
	task, _ = m.Next(Do(step(rules.CreateAttachment)), s, now)
	task.Sent = Request{Kind: rules.CreateAttachment}
	if _, next := m.Answer(task, Answer{}, s, now); next.End != Failed || next.Tell != nil {
		t.Errorf("an answer without a result to a creation: %+v", next)
	}
	task.Step.Kind = 99
	if _, next := m.Answer(task, Answer{Result: Done}, s, now); next.End != Failed || next.Send != nil {
		t.Errorf("an answer to a step that is not known: %+v", next)
	}
}
