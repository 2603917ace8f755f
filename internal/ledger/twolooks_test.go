// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"reflect"
	"testing"
	"time"
)

// Exactly the second empty look in a row ends it.
func TestTwoLooksEndADoubt(t *testing.T) {
	v := VolumeID{"d", "h"}
	node := func(version, uid, boot string, lists, inUse []VolumeID) NodeState {
		return NodeState{Name: "n", UID: uid, Version: version, SystemUUID: "m", BootID: boot, Ready: ReadyTrue, Reporting: true, Reported: lists, InUse: inUse}
	}
	word := func(version string, look int64, has ...VolumeID) NodeWord {
		w := wordOf(version, look, look, has...)
		w.NodeUID = "u2"
		return w
	}
	asked := func(look int64, vacant ...int64) Event { // and since when it was absent, for the second one
		e := LookAsked{Volume: v, Node: "n", UID: proofUID("a"), Version: "1", Look: look}
		for _, at := range vacant {
			e.Vacant = time.Unix(1000+at, 0)
		}
		return e
	}
	out := Unreported{Volume: v, Node: "n", UID: proofUID("a"), Version: "1", Unknown: true}
	unread := func(version string, look int64) Event { w := word(version, look); w.Whole = false; return w }
	ofNext := func(version string, look int64) Event { w := word(version, look); w.NodeUID = "u3"; return w }
	halfRead := func(version string, look int64) Event {
		w := word(version, look)
		w.Unread = []Unread{{PersistentVolume: "pv9"}}
		return w
	}
	unnamed := node("4", "u2", "b", nil, nil)
	unnamed.SystemUUID = ""
	remade := func(version string, look int64) Event { w := word(version, look); w.UID = "w2"; return w }
	for name, test := range map[string]struct {
		events       []Event
		doubts, seen bool // it is doubted; the start of its absence is known
	}{
		"two looks":                         {[]Event{out, asked(1), word("1", 1), asked(2, 6), word("2", 2)}, false, true},
		"both are heard before the answers": {[]Event{out, word("1", 1), asked(1), word("2", 2), asked(2, 6)}, false, true},
		"the word before was asked for":     {[]Event{word("1", 1), out, asked(2), word("2", 2)}, true, true},
		"one look":                          {[]Event{out, asked(1), word("1", 1), asked(2, 6)}, true, true},
		"none since it was asked":           {[]Event{out, asked(2), word("1", 1)}, true, false},
		"one look, said twice":              {[]Event{out, asked(1), word("1", 1), word("2", 1)}, true, true},
		"one look, asked for twice":         {[]Event{out, asked(1), word("1", 1), asked(1)}, true, true},
		"two looks, asked for at once":      {[]Event{out, asked(1), asked(2), word("2", 2)}, true, true},
		"the first finds it":                {[]Event{out, asked(1), word("1", 1, v), asked(2), word("2", 2)}, true, true},
		"the second finds it":               {[]Event{out, asked(1), word("1", 1), asked(2, 6), word("2", 2, v)}, true, false},
		"the second can't read all":         {[]Event{out, asked(1), word("1", 1), asked(2, 6), unread("2", 2)}, true, false},
		"found while it is asked":           {[]Event{out, asked(1), word("1", 1), word("2", 1, v), word("3", 1), asked(2, 6), word("4", 2)}, true, true},
		"found in between, and gone again":  {[]Event{out, asked(1), word("1", 1), word("2", 1, v), word("3", 1), asked(2, 8), word("4", 2)}, false, true},
		"the kubelet lists it":              {[]Event{out, asked(1), word("1", 1), node("4", "u2", "b", nil, []VolumeID{v}), node("5", "u2", "b", nil, nil), asked(2, 6), word("2", 2)}, true, false},
		"a pod comes and goes":              {[]Event{out, asked(1), word("1", 1), dataPod(v, "n"), PodGone{UID: "p"}, asked(2, 6), word("2", 2)}, true, false},
		"its NodeMountReport is made again": {[]Event{out, asked(1), word("1", 1), remade("2", 0), asked(2, 6), remade("3", 2)}, true, true},
		"its word comes before the Node":    {[]Event{out, asked(1), NodeGone{Name: "n"}, ofNext("1", 1), node("4", "u3", "b", nil, nil), asked(2, 8), ofNext("2", 2)}, false, true},
		"and nobody has asked again":        {[]Event{out, asked(1), NodeGone{Name: "n"}, ofNext("1", 1), node("4", "u3", "b", nil, nil)}, true, true},
		"whose a record is, is known later": {[]Event{out, asked(1), halfRead("1", 1), PersistentVolume{Name: "pv9", UID: "9", Version: "1", Volume: VolumeID{"d", "other"}}}, true, true},
		"the machine is named only later":   {[]Event{out, asked(1), word("1", 1), asked(2, 6), unnamed, word("2", 2), node("5", "u2", "b", nil, nil)}, false, true},
		"it was not taken out in doubt":     {[]Event{asked(1), word("1", 1), asked(2, 5), word("2", 2)}, true, false},
	} {
		l := New()
		facts := []Event{
			proofAttachment(v, "n", "a", "1"), node("1", "u", "b", []VolumeID{v}, nil), NodeGone{Name: "n"},
			node("3", "u2", "b", nil, nil),
		}
		for i, e := range append(facts, test.events...) {
			l.Apply(time.Unix(1000+int64(i), 0), e)
		}
		s := l.Snapshot()
		p := s.Volume(v).OnNode("n")
		if got := isUnknown(l, v, "n"); got != test.doubts {
			t.Errorf("%s: doubted: %t", name, got)
		}
		if got := !s.Vacant(p).IsZero(); got != test.seen {
			t.Errorf("%s: nothing is there: %t, want %t", name, got, test.seen)
		}
	}
}

func dataPod(v VolumeID, n NodeName) Event {
	return Pod{UID: "p", Version: "1", Namespace: "shop", Name: "p", Node: n, Phase: PodLive, Volumes: []PodVolume{{Name: "v", Inline: v}}}
}

// Only the version and the number of grants may differ.
func TestHoldThatSaysTheSame(t *testing.T) {
	full := func() Hold {
		who := Requester{Namespace: "shop", Name: "db", UID: "p"}
		return Hold{Version: "1", Requesters: []Requester{who}, Waiting: []Requester{who}, PVs: []string{"pv"}, Force: &Force{}, Fences: []Fence{{Node: "n"}}}
	}
	same := full()
	kind := reflect.TypeFor[Hold]()
	for i := range kind.NumField() {
		is := full()
		field := reflect.ValueOf(&is).Elem().Field(i)
		switch field.Kind() {
		case reflect.String:
			field.SetString("9")
		case reflect.Int64, reflect.Int32:
			field.SetInt(9)
		case reflect.Uint8:
			field.SetUint(1)
		case reflect.Bool:
			field.SetBool(true)
		case reflect.Struct: // Next
			is.Next.Node = "n"
		default:
			field.SetZero()
		}
		name := kind.Field(i).Name
		if got, want := same.saysTheSame(&is), name == "Version" || name == "Grants"; got != want {
			t.Errorf("another %s: the same: %t", name, got)
		}
	}
	v := VolumeID{"d", "h"}
	l := New()
	first, second := full(), full()
	second.Version, second.Grants = "2", 1
	l.Apply(time.Unix(1000, 0), HoldSeen{v, first})
	if touched := l.Apply(time.Unix(1000, 0), HoldSeen{v, second}); len(touched.Volumes) > 0 || l.Snapshot().Volume(v).Hold.Version != "2" {
		t.Errorf("a grant's version wakes %v, and the version is %s", touched.Volumes, l.Snapshot().Volume(v).Hold.Version)
	}
	if (*Hold)(nil).saysTheSame(&same) || (&Hold{}).saysTheSame(&Hold{}) {
		t.Error("a hold that was not there says the same as one that is")
	}
}
