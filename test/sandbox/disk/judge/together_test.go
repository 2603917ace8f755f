// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"slices"
	"testing"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func effects(mode string, steps ...[2]string) []diskapi.Entry {
	var log []diskapi.Entry
	for i, s := range steps {
		e := diskapi.Entry{
			Seq: uint64(i + 1), Phase: diskapi.Applied, Call: diskapi.Call(s[0]), Volume: "v", Node: s[1],
			Args: diskapi.Args{AccessMode: mode, Path: "/staging"},
		}
		if e.Call == diskapi.FenceNode || e.Call == diskapi.UnfenceNode {
			e.Phase, e.Volume = diskapi.Noted, ""
		}
		log = append(log, e)
	}
	return log
}

func TestFindTogether(t *testing.T) {
	const (
		attach, detach  = string(diskapi.ControllerPublish), string(diskapi.ControllerUnpublish)
		mount, unmount  = string(diskapi.NodeStage), string(diskapi.NodeUnstage)
		give, take      = string(diskapi.NodePublish), string(diskapi.NodeUnpublish)
		exclusive, many = "SINGLE_NODE_WRITER", "MULTI_NODE_MULTI_WRITER"
	)
	for name, c := range map[string]struct {
		mode  string
		steps [][2]string
		want  []uint64 // their numbers, 100 more where both mount
	}{
		"one after the other": {exclusive, [][2]string{{attach, "a"}, {mount, "a"}, {unmount, "a"}, {detach, "a"}, {attach, "b"}, {mount, "b"}}, nil},
		"attached to two":     {exclusive, [][2]string{{attach, "a"}, {attach, "b"}, {mount, "b"}}, []uint64{2}},
		"mounted by two":      {exclusive, [][2]string{{attach, "a"}, {mount, "a"}, {attach, "b"}, {mount, "b"}}, []uint64{3, 104}},
		"mounted again where it was": {exclusive,
			[][2]string{{attach, "a"}, {attach, "b"}, {mount, "b"}, {mount, "a"}, {mount, "a"}}, []uint64{2, 104}},
		"a mount that was left behind at a node that lost the disk": {exclusive,
			[][2]string{{attach, "a"}, {mount, "a"}, {detach, "a"}, {attach, "b"}, {mount, "b"}}, nil},
		"a machine that was switched off": {exclusive,
			[][2]string{{attach, "a"}, {mount, "a"}, {string(diskapi.FenceNode), "a"}, {attach, "b"}, {mount, "b"}}, []uint64{4}},
		"attached again where it was":            {exclusive, [][2]string{{attach, "a"}, {attach, "a"}}, nil},
		"given to pods":                          {exclusive, [][2]string{{attach, "a"}, {give, "a"}, {attach, "b"}, {give, "b"}}, []uint64{3, 104}},
		"taken from a pod":                       {exclusive, [][2]string{{attach, "a"}, {give, "a"}, {take, "a"}, {attach, "b"}, {mount, "b"}}, []uint64{4}},
		"unmounted":                              {exclusive, [][2]string{{attach, "a"}, {mount, "a"}, {unmount, "a"}, {attach, "b"}, {mount, "b"}}, []uint64{4}},
		"a machine that is taken for alive anew": {exclusive, [][2]string{{attach, "a"}, {mount, "a"}, {string(diskapi.UnfenceNode), "a"}, {attach, "b"}, {mount, "b"}}, []uint64{4, 105}},
		"a shared volume":                        {many, [][2]string{{attach, "a"}, {mount, "a"}, {attach, "b"}, {mount, "b"}}, nil},
	} {
		var got []uint64
		for _, f := range FindTogether(effects(c.mode, c.steps...)) {
			seq := f.Entry.Seq
			if f.Mounted {
				seq += 100
			}
			if f.Other == f.Entry.Node || f.Other == "" {
				t.Errorf("%s: the other node is %q", name, f.Other)
			}
			got = append(got, seq)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: found at %v, want %v", name, got, c.want)
		}
	}
}
