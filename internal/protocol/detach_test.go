// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

func TestUnreport(t *testing.T) {
	patch := "patch-node n1 add=false uid=n"
	for name, test := range map[string]struct {
		step    rules.Step
		replies []reply
		want    []string
	}{
		"written": {step(rules.Unreport), []reply{replies(Done, node("2"))}, []string{patch, "tell Unreported", "finished"}},
		"by force": {step(rules.Unreport, byForce), []reply{replies(Done, node("2"))},
			[]string{patch + " AfterPodGone@1", "tell Unreported", "finished"}},
		"the Node is gone": {step(rules.Unreport), []reply{replies(NotFound), replies(NotFound)}, []string{patch, "get nodes n1", "stale"}},
		"by force, no answer, and the Node is gone": {step(rules.Unreport, byForce), []reply{replies(Unknown), replies(NotFound)},
			[]string{patch + " AfterPodGone@1", "wait 20s", "get nodes n1", "stale"}},
		"no Node, and no answer": {step(rules.Unreport, noNode), []reply{replies(Unknown)}, []string{"get nodes n1", "failed"}},
		"refused":                {step(rules.Unreport), []reply{replies(Conflict), replies(Done, node("2"))}, []string{patch, "get nodes n1", "stale"}},
		"no answer":              {step(rules.Unreport), []reply{replies(Unknown)}, []string{patch, "failed"}},
		"by force, and no answer": {step(rules.Unreport, byForce), []reply{replies(Unknown), replies(Done, node("2"))},
			[]string{patch + " AfterPodGone@1", "wait 20s", "get nodes n1", "stale"}},
		"no Node": {step(rules.Unreport, noNode), []reply{replies(NotFound)}, []string{"get nodes n1", "tell Unreported", "finished"}},
		"a Node that nobody knew": {step(rules.Unreport, noNode), []reply{replies(Done, node("2"))},
			[]string{"get nodes n1", "stale"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(attachment("5"))
			check(t, p.play(t, Do(test.step), test.replies...), test.want...)
			proof := p.ledger.Snapshot().Volume(disk).OnNode("n1").Proof
			if proved := test.want[len(test.want)-1] == "finished"; proved != (proof.Stage == ledger.ProofUnreported) {
				t.Errorf("proof %v", proof)
			}
			if forced := test.step.Rule != "" && proof.Stage != ledger.ProofNone; forced != proof.Forced {
				t.Errorf("by force: %t", proof.Forced)
			}
		})
	}
}

func TestProveAbsent(t *testing.T) {
	inUse := func(n *ledger.NodeState) { n.InUse = []ledger.VolumeID{disk} }
	reported := func(n *ledger.NodeState) { n.Reported = []ledger.VolumeID{disk} }
	another := func(n *ledger.NodeState) { n.UID = "m" }
	for name, test := range map[string]struct {
		step  rules.Step
		reply reply
		end   string
	}{
		"absent":                            {step(rules.ProveAbsent), replies(Done, node("9")), "finished"},
		"in use":                            {step(rules.ProveAbsent), replies(Done, node("9", inUse)), "stale"},
		"reported":                          {step(rules.ProveAbsent), replies(Done, node("9", reported)), "stale"},
		"another Node":                      {step(rules.ProveAbsent), replies(Done, node("9", another)), "stale"},
		"by force":                          {step(rules.ProveAbsent, byForce), replies(Done, node("1", silent, inUse)), "finished"},
		"by force, at a new state":          {step(rules.ProveAbsent, byForce), replies(Done, node("9", silent)), "stale"},
		"no Node":                           {step(rules.ProveAbsent, noNode), replies(NotFound), "finished"},
		"the Node is gone":                  {step(rules.ProveAbsent), replies(NotFound), "stale"},
		"no answer":                         {step(rules.ProveAbsent), replies(Unknown), "failed"},
		"no Node was there, and one is now": {step(rules.ProveAbsent, noNode), replies(Done, node("1")), "stale"},
		"no Node was there, and no answer":  {step(rules.ProveAbsent, noNode), replies(Unknown), "failed"},
		"an answer that is none":            {step(rules.ProveAbsent), replies(Unknown, node("9")), "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			want := []string{"get nodes n1", test.end}
			if test.end == "finished" {
				want = []string{"get nodes n1", "tell Unreported", "finished"}
			}
			check(t, newPlayer(attachment("5")).play(t, Do(test.step), test.reply), want...)
		})
	}
}

func inlineOf(name string, v ledger.VolumeID) ledger.Pod {
	p := pod(name, "n1")
	p.Volumes = []ledger.PodVolume{{Name: "cache", Inline: v}}
	return p
}

func TestConfirmUnwanted(t *testing.T) {
	finished := pod("p", "n1", "a")
	finished.Phase = ledger.PodFinished
	ended := pod("ended", "n1", "a")
	ended.Version, ended.Phase = "9", ledger.PodFinished
	newer := ledger.Claim{Key: ledger.ClaimKey{Namespace: "s", Name: "new"}, UID: "new", Version: "1", PersistentVolume: "a", Bound: true}
	elsewhere := newer
	elsewhere.PersistentVolume = "pv-9"
	pv := ledger.PersistentVolume{Name: "pv-9", Version: "1", Volume: disk, Access: ledger.AccessNode}
	again := ledger.Claim{Key: ledger.ClaimKey{Namespace: "s", Name: "c"}, UID: "again", Version: "2", PersistentVolume: "a", Bound: true}
	moved := ledger.PersistentVolume{Name: "a", Version: "2", Volume: disk, Access: ledger.AccessNode, Claim: again.Key}
	given := ledger.PersistentVolume{Name: "a", Version: "2", Volume: disk, Access: ledger.AccessNode, Claim: newer.Key}
	still := ledger.PersistentVolume{Name: "a", Version: "1", Volume: disk, Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "s", Name: "a"}}
	b := ledger.Claim{Key: ledger.ClaimKey{Namespace: "s", Name: "b"}, UID: "b", Version: "1", PersistentVolume: "b", Bound: true}
	list := func(pods ...ledger.Event) reply { return replies(Done, pods...) }
	for name, test := range map[string]struct {
		replies []reply
		want    []string
	}{
		"nobody":          {[]reply{list()}, []string{"tell Unwanted", "finished"}},
		"who is finished": {[]reply{list(finished)}, []string{"tell Unwanted", "finished"}},
		"no answer":       {[]reply{replies(Unknown)}, []string{"failed"}},
		"who is known, and wants another": {[]reply{list(pod("known", "n1", "c")), replies(Done, still)},
			[]string{"get pvs a", "tell Unwanted", "finished"}},
		"who is new, and wants another": {[]reply{list(pod("p", "n1", "b")), replies(Done, b), replies(Done, still)},
			[]string{"get claims s/b", "get pvs a", "tell Unwanted", "finished"}},
		"who is new, and wants it": {[]reply{list(pod("p", "n1", "new")), replies(Done, newer), replies(Done, given)},
			[]string{"get claims s/new", "get pvs a", "finished"}},
		"who is new, and only says that it is theirs": {[]reply{list(pod("p", "n1", "new")), replies(Done, newer), replies(Done, still)},
			[]string{"get claims s/new", "get pvs a", "tell Unwanted", "finished"}},
		"a claim that is gone": {[]reply{list(pod("p", "n1", "new")), replies(NotFound), replies(Done, still)},
			[]string{"get claims s/new", "get pvs a", "tell Unwanted", "finished"}},
		"a claim and its volume are new": {[]reply{list(pod("p", "n1", "new")), replies(Done, elsewhere), replies(Done, pv)},
			[]string{"get claims s/new", "get pvs pv-9", "finished"}},
		"a claim that was made again": {[]reply{list(pod("known", "n1", "c")), replies(Done, moved), replies(Done, again)},
			[]string{"get pvs a", "get claims s/c", "finished"}},
		"who is new, with a claim that the caches know": {[]reply{list(pod("p", "n1", "b")), replies(Done, again, b), replies(Done, still)},
			[]string{"get claims s/b", "get pvs a", "tell Unwanted", "finished"}},
		"who was known before it was bound": {[]reply{list(pod("waits", "n1", "b")), replies(Done, b), replies(Done, still)},
			[]string{"get claims s/b", "get pvs a", "tell Unwanted", "finished"}},
		"two claims that are new": {[]reply{list(pod("p", "n1", "b", "new")), replies(Done, b), replies(NotFound), replies(Done, still)},
			[]string{"get claims s/b", "get claims s/new", "get pvs a", "tell Unwanted", "finished"}},
		"a claim that is not bound": {[]reply{list(pod("p", "n1", "new")), replies(Done, ledger.Claim{Key: newer.Key, UID: "new", Version: "1"}), replies(Done, still)},
			[]string{"get claims s/new", "get pvs a", "tell Unwanted", "finished"}},
		"no claim at all": {[]reply{list(inlineOf("p", ledger.VolumeID{Driver: driver, Handle: "z"}))}, []string{"tell Unwanted", "finished"}},
		"it is inline":    {[]reply{list(inlineOf("p", disk))}, []string{"finished"}},
		"no list":         {[]reply{replies(NotFound)}, []string{"failed"}},
		"who is known, with a claim that nobody knows": {[]reply{list(pod("lost", "n1", "nothing")), replies(NotFound), replies(Done, still)},
			[]string{"get claims s/nothing", "get pvs a", "tell Unwanted", "finished"}},
		"who is known, with a claim of storage that needs no attachment": {[]reply{list(pod("nfs", "n1", "nfs")), replies(Done, still)},
			[]string{"get pvs a", "tell Unwanted", "finished"}},
		"its PersistentVolume is of a claim that was read": {[]reply{list(pod("p", "n1", "b")), replies(Done, b), replies(Done, ledger.PersistentVolume{Name: "a", Version: "2", Volume: disk, Claim: b.Key})},
			[]string{"get claims s/b", "get pvs a", "tell Unwanted", "finished"}},
		"who is known to have ended since, and wants it": {[]reply{list(pod("ended", "n1", "a"))}, []string{"finished"}},
		"its PersistentVolume is of no claim": {[]reply{list(pod("known", "n1", "c")), replies(Done, ledger.PersistentVolume{Name: "a", Version: "2", Volume: disk})},
			[]string{"get pvs a", "tell Unwanted", "finished"}},
		"no answer about its PersistentVolume": {[]reply{list(pod("known", "n1", "c")), replies(Unknown)}, []string{"get pvs a", "failed"}},
		"no answer about a claim":              {[]reply{list(pod("p", "n1", "new")), replies(Unknown)}, []string{"get claims s/new", "failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(attachment("5"), pod("known", "n1", "c"), pod("waits", "", "b"), pod("lost", "n1", "nothing"), ended,
				pod("nfs", "n1", "nfs"), ledger.Claim{Key: ledger.ClaimKey{Namespace: "s", Name: "nfs"}, UID: "nfs", Version: "1", PersistentVolume: "nfs", Bound: true},
				ledger.PersistentVolume{Name: "nfs", Version: "1"},
				ledger.Unreported{Volume: disk, Node: "n1", UID: "va", Version: "5"})
			check(t, p.play(t, Do(step(rules.ConfirmUnwanted)), test.replies...), append([]string{"list-pods n1"}, test.want...)...)
		})
	}
}

func TestConfirmUnwantedOfNothing(t *testing.T) {
	gone := step(rules.ConfirmUnwanted, func(s *rules.Step) { s.Volume.Handle = "gone" })
	p := newPlayer(pod("known", "n1", "c"))
	check(t, p.play(t, Do(gone), replies(Done, pod("known", "n1", "c"))), "list-pods n1", "tell Unwanted", "finished")
}

func TestDeleteAttachment(t *testing.T) {
	drop, look, list := "delete-attachment uid=va version=5", "get nodes n1", "list-pods n1"
	claim := ledger.Claim{Key: ledger.ClaimKey{Namespace: "s", Name: "a"}, UID: "a", Version: "1", PersistentVolume: "a", Bound: true}
	other := ledger.Claim{Key: ledger.ClaimKey{Namespace: "s", Name: "b"}, UID: "b", Version: "1", PersistentVolume: "b", Bound: true}
	still := ledger.PersistentVolume{Name: "a", Version: "1", Volume: disk, Access: ledger.AccessNode, Claim: claim.Key}
	late := replies(Done)
	late.after = 2 * time.Second
	for name, test := range map[string]struct {
		step    rules.Step
		replies []reply
		want    []string
	}{
		"deleted": {step(rules.DeleteAttachment), []reply{replies(Done)}, []string{drop, "finished"}},
		"gone":    {step(rules.DeleteAttachment), []reply{replies(NotFound)}, []string{drop, "finished"}},
		"another version": {step(rules.DeleteAttachment), []reply{replies(Conflict), replies(Done, attachment("6"))},
			[]string{drop, "get attachments " + ledger.AttachmentName(disk, "n1"), "stale"}},
		"no answer":                   {step(rules.DeleteAttachment), []reply{replies(Unknown)}, []string{drop, "failed"}},
		"by force":                    {step(rules.DeleteAttachment, byForce), []reply{replies(Done, node("1", silent)), replies(Done)}, []string{look, drop, "finished"}},
		"Ready again":                 {step(rules.DeleteAttachment, byForce), []reply{replies(Done, node("2"))}, []string{look, "stale"}},
		"Ready since the read":        {step(rules.DeleteAttachment, byForce), []reply{replies(Done, node("1", silent), node("2"))}, []string{look, "stale"}},
		"the Node is gone":            {step(rules.DeleteAttachment, byForce), []reply{replies(NotFound)}, []string{look, "stale"}},
		"made again at that version":  {step(rules.DeleteAttachment, byForce), []reply{replies(Done, node("1", silent, func(n *ledger.NodeState) { n.UID = "m" }))}, []string{look, "stale"}},
		"of a later state":            {step(rules.DeleteAttachment, byForce), []reply{replies(Done, node("2", silent))}, []string{look, "stale"}},
		"and the read fails":          {step(rules.DeleteAttachment), []reply{replies(Conflict), replies(Unknown)}, []string{drop, "get attachments " + ledger.AttachmentName(disk, "n1"), "failed"}},
		"of a former machine":         {step(rules.DeleteAttachment, byForce, successor("m2")), []reply{replies(Done, node("1", names("m2"))), replies(Done)}, []string{look, drop, "finished"}},
		"a former machine is back":    {step(rules.DeleteAttachment, byForce, successor("m2")), []reply{replies(Done, node("1", names("m2")), node("2", names("m1")))}, []string{look, "stale"}},
		"a former machine, and later": {step(rules.DeleteAttachment, byForce, successor("m2")), []reply{replies(Done, node("2", names("m2")))}, []string{look, "stale"}},
		"there is no Node":            {step(rules.DeleteAttachment, byForce, noNode), []reply{replies(NotFound), replies(Done)}, []string{look, drop, "finished"}},
		"there is no Node, it seems":  {step(rules.DeleteAttachment, byForce, noNode), []reply{replies(Unknown)}, []string{look, "failed"}},
		"there is a Node":             {step(rules.DeleteAttachment, byForce, noNode), []reply{replies(Done, node("1", silent))}, []string{look, "stale"}},
		"the Node's unknown":          {step(rules.DeleteAttachment, byForce), []reply{replies(Unknown)}, []string{look, "failed"}},
		"within a time": {step(rules.DeleteAttachment, inASecond), []reply{replies(Done), replies(Done)},
			[]string{list, "tell Unwanted", drop, "finished"}},
		"within a time, and somebody came":          {step(rules.DeleteAttachment, inASecond), []reply{replies(Done, pod("p", "n1", "a")), replies(Done, claim)}, []string{list, "get claims s/a", "stale"}},
		"within a time, and the attachment changes": {step(rules.DeleteAttachment, inASecond), []reply{replies(Done, attachment("6"))}, []string{list, "tell Unwanted", "stale"}},
		"within a time, and the attachment goes":    {step(rules.DeleteAttachment, inASecond), []reply{replies(Done, ledger.AttachmentGone{Name: name})}, []string{list, "tell Unwanted", "stale"}},
		"within a time, and somebody wants another": {step(rules.DeleteAttachment, inASecond),
			[]reply{replies(Done, pod("p", "n1", "b")), replies(Done, other), replies(Done, still), replies(Done)}, []string{list, "get claims s/b", "get pvs a", "tell Unwanted", drop, "finished"}},
		"there is no Node, and nothing of it": {step(rules.DeleteAttachment, byForce, noNode), []reply{replies(NotFound, ledger.AttachmentGone{Name: name}), replies(Done)}, []string{look, drop, "finished"}},
		"within a time, and no answer":        {step(rules.DeleteAttachment, inASecond), []reply{replies(Unknown)}, []string{list, "failed"}},
		"within a time, and by force":         {step(rules.DeleteAttachment, inASecond, byForce), []reply{replies(Done), replies(Done, node("1", silent)), replies(Done)}, []string{list, "tell Unwanted", look, drop, "finished"}},
		"within a time that is over":          {step(rules.DeleteAttachment, inASecond), []reply{late}, []string{list, "tell Unwanted", "failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(attachment("5"), ledger.Unreported{Volume: disk, Node: "n1", UID: "va", Version: "5"})
			if test.step.Rule != "" {
				p.ledger.Apply(now, ledger.NodeGone{Name: "n1"})
			}
			if test.step.Rule != "" && test.step.NodeUID != "" {
				is := silent
				if test.step.Successor != "" {
					is = names(test.step.Successor)
				}
				p.ledger.Apply(now, node("1", is))
			}
			check(t, p.play(t, Do(test.step), test.replies...), test.want...)
			if test.step.Within > 0 && !p.last.Sent.Until.Equal(now.Add(time.Second)) {
				t.Errorf("the deadline is %s", p.last.Sent.Until)
			}
		})
	}
}

func TestDeleteWhereNothingIsKnown(t *testing.T) {
	nowhere := step(rules.DeleteAttachment, byForce, noNode, func(s *rules.Step) { s.Node = "n9" })
	check(t, newPlayer().play(t, Do(nowhere), replies(NotFound), replies(Done)), "get nodes n9", "delete-attachment uid=va version=5", "finished")
}

func TestRemovePod(t *testing.T) {
	for name, test := range map[string]struct {
		replies []reply
		want    []string
	}{
		"out of service":      {[]reply{replies(Done, node("2", tainted)), replies(Done)}, []string{"get nodes n1", "remove-pod uid=va", "finished"}},
		"gone already":        {[]reply{replies(Done, node("2", tainted)), replies(NotFound)}, []string{"get nodes n1", "remove-pod uid=va", "finished"}},
		"another of its name": {[]reply{replies(Done, node("2", tainted)), replies(Conflict)}, []string{"get nodes n1", "remove-pod uid=va", "finished"}},
		"refused":             {[]reply{replies(Done, node("2", tainted)), replies(Refused)}, []string{"get nodes n1", "remove-pod uid=va", "failed"}},
		"the taint is gone":   {[]reply{replies(Done, node("2", silent))}, []string{"get nodes n1", "stale"}},
		"it is Ready":         {[]reply{replies(Done, node("2", tainted, func(n *ledger.NodeState) { n.Ready = ledger.ReadyTrue }))}, []string{"get nodes n1", "stale"}},
		"the Node is gone":    {[]reply{replies(NotFound)}, []string{"get nodes n1", "stale"}},
		"no answer about it":  {[]reply{replies(Unknown)}, []string{"get nodes n1", "failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, newPlayer().play(t, Do(step(rules.RemovePod)), test.replies...), test.want...)
		})
	}
}
