// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"testing"
)

func TestMountedAlone(t *testing.T) {
	v := VolumeID{"disk", "h"}
	word := func(version string, mounted, forgotten bool) NodeWord {
		w := NodeWord{Node: "n", UID: "w", Version: version, NodeUID: "n", BootID: "b", Whole: true, Has: []VolumeID{v}}
		if mounted {
			w.Mounted = w.Has
		}
		if forgotten {
			w.Forgotten = w.Has
		}
		return w
	}
	uses := Pod{UID: "p", Version: "1", Namespace: "ns", Name: "p", Node: "n", Volumes: []PodVolume{{Name: "v", Inline: v}}}
	other := word("1", true, true)
	other.Node, other.UID = "m", "o"
	l := New()
	for _, step := range []struct {
		is      string
		event   Event
		want    []NodeName
		touches bool
	}{
		{"the kubelet knows of it", word("1", true, false), nil, false},
		{"forgotten", word("2", true, true), []NodeName{"n"}, true},
		{"the same again", word("3", true, true), []NodeName{"n"}, false},
		{"at another node, too", other, []NodeName{"m", "n"}, true},
		{"a pod is there", uses, []NodeName{"m"}, true},
		{"the pod is gone", PodGone{UID: "p"}, []NodeName{"m", "n"}, true},
		{"the other word is gone", NodeWordGone{Node: "m"}, []NodeName{"n"}, true},
		{"the kubelet lists it", NodeState{Name: "n", UID: "n", Version: "1", BootID: "b", Reporting: true, InUse: []VolumeID{v}}, nil, true},
		{"the kubelet lists it no more", NodeState{Name: "n", UID: "n", Version: "2", BootID: "b", Reporting: true}, []NodeName{"n"}, true},
		{"the node is not ready", NodeState{Name: "n", UID: "n", Version: "3", BootID: "b", Reporting: true, Ready: ReadyFalse}, []NodeName{"n"}, true},
		{"only records are left", word("4", false, true), nil, true},
	} {
		touched := l.Apply(start, step.event)
		if got := l.Snapshot().MountedAlone(v); !slices.Equal(got, step.want) || slices.Contains(touched.Volumes, v) != step.touches {
			t.Errorf("%s: at %v, touched %v", step.is, got, touched.Volumes)
		}
	}
	if l.facts.alone.get(v) != nil {
		t.Error("a record is left that says nothing")
	}
}
