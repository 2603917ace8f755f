// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/test/alloctest"
)

func spoken(v VolumeID, events ...Event) *Ledger {
	l := New()
	now := time.Unix(1000, 0)
	n := NodeState{Name: "n", UID: "u", Version: "1", BootID: "b", Ready: ReadyTrue, Reporting: true}
	for _, e := range append([]Event{proofAttachment(v, "n", "a", "1"), n}, events...) {
		l.Apply(now, e)
	}
	return l
}

func wordOf(version string, look, looked int64, has ...VolumeID) NodeWord {
	return NodeWord{Node: "n", UID: "w", Version: version, NodeUID: "u", BootID: "b", Look: look, Looked: looked, Has: has, Whole: true}
}

// For the present Node and boot, if everything was readable. A reported volume always counts.
func TestNodeSpeaks(t *testing.T) {
	v := VolumeID{"d", "h"}
	for name, test := range map[string]struct {
		change               func(*NodeWord)
		answers, speaks, has bool
	}{
		"all":              {func(*NodeWord) {}, true, true, true},
		"nothing is there": {func(w *NodeWord) { w.Has = nil }, true, true, false},
		"another boot":     {func(w *NodeWord) { w.BootID = "c" }, false, false, false},
		"another Node":     {func(w *NodeWord) { w.NodeUID = "x" }, false, false, true},
		"not whole":        {func(w *NodeWord) { w.Whole = false }, true, false, true},
		"not listed":       {func(w *NodeWord) { w.Has, w.Unlisted = nil, []Unlisted{{"d", []string{HandleDigest("h")[:8]}}} }, true, true, true},
		"others not listed": {func(w *NodeWord) {
			w.Has, w.Unlisted = nil, []Unlisted{{"c", []string{HandleDigest("h")[:8]}}, {"d", []string{"ffffffff"}}}
		}, true, true, false},
	} {
		word := wordOf("1", 0, 0, v)
		test.change(&word)
		n := spoken(v, word).Snapshot().Node("n")
		if n.Answers() != test.answers || n.Speaks() != test.speaks || n.SaysHas(v) != test.has {
			t.Errorf("%s: it answers: %t, it speaks: %t, it has the volume: %t", name, n.Answers(), n.Speaks(), n.SaysHas(v))
		}
	}
	silent := NodeState{Name: "n", UID: "u", Version: "2", Ready: ReadyTrue, Reporting: true}
	bootless := wordOf("1", 0, 0)
	bootless.BootID = ""
	if n := spoken(v, silent, bootless).Snapshot().Node("n"); n.Answers() || n.Speaks() {
		t.Error("neither the kubelet nor it says which boot it is, and its word counts")
	}
	if n := spoken(v).Snapshot().Node("n"); n.Answers() || n.Speaks() || n.SaysHas(v) || n.Looked(1) {
		t.Error("nobody has spoken")
	}
	l := spoken(v, wordOf("1", 0, 0, v), NodeGone{"n"})
	if l.Snapshot().Node("n").Speaks() {
		t.Error("it speaks of a Node that is gone")
	}
	l.Apply(time.Unix(1000, 0), NodeWordGone{Node: "n", UID: "another"})
	if n := l.Snapshot().Node("n"); !n.SaysHas(v) {
		t.Error("the one before is gone, and what this one says does not count")
	}
	l.Apply(time.Unix(1000, 0), NodeWordGone{Node: "n"})
	if n := l.Snapshot().Node("n"); n.SaysHas(v) {
		t.Error("what it said is gone, and counts")
	}
}

// Volumes of the record's PersistentVolume are in doubt; if that is unknown, all volumes.
func TestUnreadRecord(t *testing.T) {
	v, other := VolumeID{"d", "h"}, VolumeID{"d", "o"}
	pv := func(name, version string, of VolumeID) PersistentVolume {
		return PersistentVolume{Name: name, UID: name + version, Version: version, Volume: of}
	}
	word, later := wordOf("1", 0, 0), wordOf("2", 0, 0)
	word.Unread, later.Unread = []Unread{{PersistentVolume: "pv"}}, []Unread{{PersistentVolume: "pv"}}
	for name, test := range map[string]struct {
		events              []Event
		speaks, of, ofOther bool
	}{
		"its volume":               {[]Event{pv("pv", "1", v), word}, true, false, true},
		"another volume":           {[]Event{pv("pv", "1", other), word}, true, true, false},
		"no such PersistentVolume": {[]Event{word}, false, false, false},
		"one that is gone":         {[]Event{pv("pv", "1", v), PersistentVolumeGone{Name: "pv"}, word}, false, false, false},
		"one that is never had":    {[]Event{pv("pv", "1", VolumeID{}), word}, false, false, false},
		"gone after the word":      {[]Event{pv("pv", "1", v), word, PersistentVolumeGone{Name: "pv"}}, true, false, true},
		"gone, and said again":     {[]Event{pv("pv", "1", v), word, PersistentVolumeGone{Name: "pv"}, later}, true, false, true},
		"another one of its name":  {[]Event{pv("pv", "1", v), word, PersistentVolumeGone{Name: "pv"}, pv("pv", "2", other), later}, true, false, false},
		"one is not known, one is": {[]Event{pv("pv", "1", v), func() Event {
			w := word
			w.Unread = []Unread{{PersistentVolume: "pv"}, {PersistentVolume: "gone"}}
			return w
		}()}, false, false, false},
		"seen after the word":       {[]Event{word, pv("pv", "1", v)}, true, false, true},
		"another name is seen":      {[]Event{word, pv("other", "1", v)}, false, false, false},
		"the record was taken away": {[]Event{pv("pv", "1", v), word, wordOf("2", 0, 0)}, true, true, true},
	} {
		n := spoken(v, test.events...).Snapshot().Node("n")
		if n.Speaks() != test.speaks || n.SpeaksOf(v) != test.of || n.SpeaksOf(other) != test.ofOther {
			t.Errorf("%s: it speaks: %t, of the volume: %t, of another: %t", name, n.Speaks(), n.SpeaksOf(v), n.SpeaksOf(other))
		}
	}
}

// The digest concerns that driver's volume only.
func TestUnreadDigest(t *testing.T) {
	v := VolumeID{"d", "h"}
	digest := HandleDigest("h")
	if digest != "aaa9402664f1a41f40ebbc52c9993eb66aeb366602958fdfaa283b71e64db123" {
		t.Fatalf("the digest is %s", digest)
	}
	for name, test := range map[string]struct {
		unread  Unread
		of, has bool
	}{
		"nothing mounted":       {Unread{Driver: "d", Digest: digest}, false, false},
		"something mounted":     {Unread{Driver: "d", Digest: digest, There: true}, true, true},
		"forgotten":             {Unread{Driver: "d", Digest: digest, There: true, Forgotten: true}, true, true},
		"a forgotten block":     {Unread{PersistentVolume: "pv", There: true, Forgotten: true}, true, true},
		"another driver's":      {Unread{Driver: "e", Digest: digest, There: true}, true, false},
		"another volume's":      {Unread{Driver: "d", Digest: HandleDigest("o"), There: true}, true, false},
		"another's, unmounted":  {Unread{Driver: "d", Digest: HandleDigest("o")}, true, false},
		"a block volume's name": {Unread{PersistentVolume: "pv", There: true}, true, true},
	} {
		word := wordOf("1", 0, 0)
		word.Unread = []Unread{test.unread}
		l := spoken(v, PersistentVolume{Name: "pv", UID: "pv", Version: "1", Volume: v}, word)
		n := l.Snapshot().Node("n")
		if !n.Speaks() || n.SpeaksOf(v) != test.of || n.SaysHas(v) != test.has {
			t.Errorf("%s: it speaks: %t, of the volume: %t, and has it: %t", name, n.Speaks(), n.SpeaksOf(v), n.SaysHas(v))
		}
		if got := n.Word.Forgot(v); got != test.unread.Forgotten {
			t.Errorf("%s: it is forgotten: %t", name, got)
		}
		if got := l.Snapshot().Volume(v).OnNode("n").Proof.Named; got != test.has {
			t.Errorf("%s: it is named: %t", name, got)
		}
		gone := l.Apply(time.Unix(1000, 0), wordOf("2", 0, 0))
		if test.has && !slices.Contains(gone.Volumes, v) {
			t.Errorf("%s: nobody hears that it has gone", name)
		}
		if got := l.Snapshot().Volume(v).OnNode("n").Proof.Unstaged; got != test.has {
			t.Errorf("%s: it has come and gone: %t", name, got)
		}
	}
}

// The handle is digested once for all records.
func TestUnreadDigestsAreCheap(t *testing.T) {
	v := VolumeID{"d", strings.Repeat("h", 4000)}
	cost := func(records int) uint64 {
		word := wordOf("1", 0, 0)
		for i := range records {
			word.Unread = append(word.Unread, Unread{Driver: "d", Digest: HandleDigest(strconv.Itoa(i)), There: i%2 == 0})
		}
		n := spoken(v, word).Snapshot().Node("n")
		return alloctest.Bytes(func() {
			if n.SaysHas(v) || !n.SpeaksOf(v) || n.Word.Forgot(v) {
				t.Error("records of other volumes are taken for it")
			}
		})
	}
	if few, many := cost(8), cost(512); many > 2*few+4096 {
		t.Errorf("of 8 records it takes %d bytes, of 512 %d", few, many)
	}
}

// A pod's own inline volume is never attached.
func TestUnreadOwnVolume(t *testing.T) {
	v := VolumeID{"d", "h"}
	pod := Pod{UID: "p", Version: "1", Namespace: "ns", Name: "p", Node: "n", OwnCSI: []string{"secrets"}}
	word, later := wordOf("1", 0, 0), wordOf("2", 0, 0)
	word.Unread = []Unread{{PersistentVolume: "secrets", Pod: "p"}}
	later.Unread = word.Unread
	elsewhere := word
	elsewhere.Unread = []Unread{{PersistentVolume: "secrets", Pod: "q"}}
	pv := PersistentVolume{Name: "secrets", UID: "pv", Version: "1", Volume: v}
	for name, test := range map[string]struct {
		events     []Event
		speaks, of bool
	}{
		"its pod is not known":            {[]Event{word}, false, false},
		"its pod is":                      {[]Event{pod, word}, true, true},
		"its pod is seen later":           {[]Event{word, pod}, true, true},
		"its pod has another volume":      {[]Event{Pod{UID: "p", Version: "1", Namespace: "ns", Name: "p", Node: "n", OwnCSI: []string{"other"}}, word}, false, false},
		"its pod is gone since":           {[]Event{pod, word, PodGone{UID: "p"}, later}, true, true},
		"it is in another pod's folder":   {[]Event{pod, elsewhere}, false, false},
		"a PersistentVolume has the name": {[]Event{pod, pv, word}, true, false},
		"one has it later":                {[]Event{pod, word, pv}, true, false},
	} {
		n := spoken(v, test.events...).Snapshot().Node("n")
		if n.Speaks() != test.speaks || n.SpeaksOf(v) != test.of {
			t.Errorf("%s: it speaks: %t, of the volume: %t", name, n.Speaks(), n.SpeaksOf(v))
		}
	}
	l := spoken(v, word)
	if touched := l.Apply(time.Unix(1000, 0), pod); !slices.Contains(touched.Volumes, v) {
		t.Error("nobody looks again at what the node speaks of now")
	}
}

func TestUnreadRecordIsHeard(t *testing.T) {
	v := VolumeID{"d", "h"}
	pv := PersistentVolume{Name: "pv", UID: "pv", Version: "1", Volume: v}
	unread := wordOf("2", 0, 0)
	unread.Unread = []Unread{{PersistentVolume: "pv"}}
	l := spoken(v, pv, wordOf("1", 0, 0, v), unread)
	if l.Snapshot().Volume(v).OnNode("n").Proof.Unstaged {
		t.Error("it counts as gone")
	}
	if touched := l.Apply(time.Unix(1000, 0), wordOf("3", 0, 0)); !slices.Contains(touched.Volumes, v) {
		t.Errorf("the volume is not looked at again: %v", touched.Volumes)
	}
}

func TestOlderWord(t *testing.T) {
	v := VolumeID{"d", "h"}
	if spoken(v, wordOf("5", 0, 0), wordOf("4", 0, 0, v)).Snapshot().Node("n").SaysHas(v) {
		t.Error("an older word counts")
	}
	other := wordOf("4", 0, 0, v)
	other.UID = "x"
	if !spoken(v, wordOf("5", 0, 0), other).Snapshot().Node("n").SaysHas(v) {
		t.Error("the word of another object does not count")
	}
}

// Unstaged ends with a new report, a user, or an attachment change.
func TestUnstaged(t *testing.T) {
	v := VolumeID{"d", "h"}
	pod := Pod{UID: "p", Version: "50", Namespace: "ns", Name: "p", Node: "n", Volumes: []PodVolume{{Name: "v", Inline: v}}}
	blind := wordOf("2", 0, 0)
	blind.Whole = false
	leaves := pod
	leaves.Version, leaves.Phase = "60", PodTerminating
	came, went := wordOf("1", 0, 0, v), wordOf("2", 0, 0)
	for name, test := range map[string]struct {
		events []Event
		want   bool
	}{
		"it came and went":             {[]Event{came, went}, true},
		"it never came":                {[]Event{wordOf("1", 0, 0), went}, false},
		"it is there":                  {[]Event{came}, false},
		"it is there again":            {[]Event{came, went, wordOf("3", 0, 0, v)}, false},
		"not all could be seen":        {[]Event{came, blind}, false},
		"a pod comes":                  {[]Event{came, went, pod}, false},
		"a pod has come since":         {[]Event{came, pod, went}, false},
		"one has come and gone since":  {[]Event{came, pod, PodGone{UID: "p"}, went}, false},
		"a pod lives":                  {[]Event{came, pod, wordOf("2", 0, 0, v), wordOf("3", 0, 0), PodGone{UID: "p"}}, false},
		"a pod is being deleted":       {[]Event{came, pod, wordOf("2", 0, 0, v), leaves, wordOf("3", 0, 0)}, true},
		"one is mounted for it anew":   {[]Event{came, pod, wordOf("2", 0, 0, v), wordOf("3", 0, 0), wordOf("4", 0, 0, v), leaves, wordOf("5", 0, 0)}, true},
		"it has said that one came":    {[]Event{came, pod, wordOf("2", 0, 0, v), PodGone{UID: "p"}, wordOf("3", 0, 0)}, true},
		"the attachment is made again": {[]Event{came, went, proofAttachment(v, "n", "b", "9")}, false},
	} {
		if p := spoken(v, test.events...).Snapshot().Volume(v).OnNode("n"); p.Proof.Unstaged != test.want {
			t.Errorf("%s: unstaged: %t", name, p.Proof.Unstaged)
		}
	}
}

// The question is about one attachment's absence from volumesAttached.
func TestLookAsked(t *testing.T) {
	v := VolumeID{"d", "h"}
	unreported := Unreported{Volume: v, Node: "n", UID: proofUID("a"), Version: "1"}
	asked := LookAsked{Volume: v, Node: "n", UID: proofUID("a"), Version: "1", Look: 7}
	of := func(change func(*LookAsked)) LookAsked {
		e := asked
		change(&e)
		return e
	}
	for name, test := range map[string]struct {
		events []Event
		want   int32
	}{
		"asked":                      {[]Event{unreported, asked}, 7},
		"before it was unreported":   {[]Event{asked}, 0},
		"of another version":         {[]Event{unreported, of(func(e *LookAsked) { e.Version = "9" })}, 0},
		"of another attachment":      {[]Event{unreported, of(func(e *LookAsked) { e.UID = "9" })}, 0},
		"of a volume that is not at": {[]Event{unreported, of(func(e *LookAsked) { e.Node = "m" })}, 0},
		"the attachment moves":       {[]Event{unreported, asked, proofAttachment(v, "n", "a", "9")}, 0},
	} {
		if p := spoken(v, test.events...).Snapshot().Volume(v).OnNode("n"); p.Proof.Look != test.want {
			t.Errorf("%s: asked with %d", name, p.Proof.Look)
		}
	}
	n := spoken(v, wordOf("1", 7, 6)).Snapshot().Node("n")
	if n.Looked(7) || !n.Looked(6) || n.Looked(0) {
		t.Error("it has looked since it was asked with 6, and not since 7")
	}
}

// A node that can't be asked owes no answer.
func TestLookRefused(t *testing.T) {
	v := VolumeID{"d", "h"}
	l := spoken(v, wordOf("1", 0, 0, v))
	for i, step := range []struct {
		event       Event
		since, last int64 // seconds; 0: not refused
		wakes       bool
	}{
		{LookRefused{"n"}, 1, 1, false},
		{LookRefused{"n"}, 1, 2, false},
		{wordOf("2", 0, 0, v), 1, 2, false},
		{LookAsked{Volume: VolumeID{"d", "other"}, Node: "n", Look: 1}, 0, 0, true},
		{LookAsked{Volume: VolumeID{"d", "other"}, Node: "n", Look: 2}, 0, 0, false},
		{LookRefused{"n"}, 6, 6, false},
		{NodeWordGone{Node: "n"}, 0, 0, true},
		{LookRefused{"n"}, 0, 0, false},
	} {
		touched := l.Apply(time.Unix(int64(i+1), 0), step.event)
		n := l.Snapshot().Node("n")
		second := func(at time.Time) int64 {
			if at.IsZero() {
				return 0
			}
			return at.Unix()
		}
		if second(n.RefusedSince) != step.since || second(n.RefusedAt) != step.last || !n.AskedAt.IsZero() || slices.Contains(touched.Volumes, v) != step.wakes {
			t.Errorf("step %d: refused since %v, last %v, asked %v; touched %v", i, n.RefusedSince, n.RefusedAt, n.AskedAt, touched.Volumes)
		}
	}
	l.Apply(time.Unix(100, 0), LookRefused{"nobody"})
	if l.Snapshot().Node("nobody") != nil {
		t.Error("a node that is not there was made")
	}
}

// Each answer restarts the time.
func TestOwesAnAnswer(t *testing.T) {
	l := New()
	at := func(seconds int64, e Event) time.Time {
		l.Apply(time.Unix(1000+seconds, 0), e)
		return l.Snapshot().Node("n").AskedAt
	}
	for i, step := range []struct {
		word NodeWord
		want int64 // seconds; negative: it owes none
	}{
		{wordOf("1", 0, 0), -1},
		{wordOf("2", 1, 0), 1},
		{wordOf("3", 2, 0), 1}, // the first is not answered yet
		{wordOf("4", 2, 1), 3},
		{wordOf("5", 2, 2), -1},
		{wordOf("6", 3, 2), 5},
	} {
		want := time.Time{}
		if step.want >= 0 {
			want = time.Unix(1000+step.want, 0)
		}
		if got := at(int64(i), step.word); !got.Equal(want) {
			t.Errorf("after %+v it owes an answer since %v", step.word, got)
		}
	}
	if !at(9, NodeGone{"n"}).Equal(time.Unix(1005, 0)) {
		t.Error("the end of the Node is an answer")
	}
}

func TestWordTouches(t *testing.T) {
	v, other := VolumeID{"d", "h"}, VolumeID{"d", "other"}
	l := spoken(v, proofAttachment(other, "n", "o", "1"))
	touched := func(e Event) []VolumeID { return l.Apply(time.Unix(1000, 0), e).Volumes }
	if got := touched(wordOf("1", 0, 0, v)); len(got) != 2 {
		t.Errorf("it begins to speak, and has %v looked at", got)
	}
	if got := touched(wordOf("2", 0, 0)); !slices.Equal(got, []VolumeID{v}) {
		t.Errorf("one goes, and it has %v looked at", got)
	}
	l.Apply(time.Unix(1000, 0), Unreported{Volume: other, Node: "n", UID: proofUID("o"), Version: "1"})
	l.Apply(time.Unix(1000, 0), LookAsked{Volume: other, Node: "n", UID: proofUID("o"), Version: "1", Look: 1})
	if got := touched(wordOf("3", 1, 1)); !slices.Equal(got, []VolumeID{other}) {
		t.Errorf("it answers, and has %v looked at", got)
	}
	if got := touched(wordOf("4", 1, 1, VolumeID{"d", "unknown"})); !slices.Equal(got, []VolumeID{other}) {
		t.Errorf("it has what nobody knows, and has %v looked at", got)
	}
	if got := touched(NodeWordGone{Node: "n"}); len(got) != 2 {
		t.Errorf("it speaks no more, and has %v looked at", got)
	}
}

func TestAnswersTouch(t *testing.T) {
	v, other := VolumeID{"d", "h"}, VolumeID{"d", "other"}
	l := spoken(v, proofAttachment(other, "n", "o", "1"), wordOf("1", 1, 0))
	if got := l.Apply(time.Unix(1000, 0), wordOf("2", 1, 1)).Volumes; len(got) != 2 {
		t.Errorf("it answers, and has %v looked at", got)
	}
	if got := l.Apply(time.Unix(1000, 0), wordOf("3", 1, 1)).Volumes; len(got) != 0 {
		t.Errorf("it says nothing new, and has %v looked at", got)
	}
}

// A node's number never lowers it.
func TestNextNumber(t *testing.T) {
	v := VolumeID{"d", "h"}
	for name, test := range map[string]struct {
		words []Event
		want  int64
	}{
		"nothing said":       {nil, 1},
		"asked":              {[]Event{wordOf("2", 7, 3)}, 8},
		"answered":           {[]Event{wordOf("2", 3, 7)}, 8},
		"as high as can be":  {[]Event{wordOf("2", MaxNumber, 3)}, MaxNumber + 1},
		"higher than can be": {[]Event{wordOf("2", 1<<62, 3)}, MaxNumber + 1},
	} {
		if got := spoken(v, test.words...).Snapshot().Node("n").NextNumber(); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
	l := spoken(v, wordOf("2", 0, 0, v), Unreported{Volume: v, Node: "n", UID: proofUID("a"), Version: "1"})
	l.Apply(time.Unix(1000, 0), LookAsked{Volume: v, Node: "n", UID: proofUID("a"), Version: "1", Look: MaxNumber + 1})
	if got := l.Snapshot().Volume(v).OnNode("n").Proof.Look; got != 0 {
		t.Errorf("it was asked with %d", got)
	}
}
