// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

const (
	rwo = "SINGLE_NODE_MULTI_WRITER"
	rwx = "MULTI_NODE_MULTI_WRITER"
)

type sky struct {
	t     *testing.T
	state *State
	id    uint64
}

func newSky(t *testing.T, c Config) *sky {
	s := &sky{t: t, state: New(c)}
	for _, n := range []string{"a", "b"} {
		s.state.Apply(diskapi.Entry{Phase: diskapi.Applied, Call: diskapi.NodeGetInfo, Node: n, Args: diskapi.Args{Slots: 1}})
	}
	for _, v := range []string{"v", "w"} {
		s.state.Apply(diskapi.Entry{Phase: diskapi.Applied, Call: diskapi.CreateVolume, Volume: v, Args: diskapi.Args{Name: v, SizeBytes: 10}})
	}
	return s
}

func (s *sky) decide(r diskapi.Request) Decision {
	s.id++
	return s.state.Decide(s.id, r)
}

// The returned effect has not taken place.
func (s *sky) start(r diskapi.Request) diskapi.Entry {
	s.t.Helper()
	d := s.decide(r)
	if d.Do != Start {
		s.t.Fatalf("%s %s %s: decided %+v, want it started", r.Call, r.Volume, r.Node, d)
	}
	return d.Effect
}

func (s *sky) done(r diskapi.Request) {
	s.t.Helper()
	s.state.Apply(s.start(r))
}

func on(call diskapi.Call, volume, node, mode string) diskapi.Request {
	return diskapi.Request{Call: call, Volume: volume, Node: node, Args: diskapi.Args{AccessMode: mode}}
}

func publish(volume, node string) diskapi.Request {
	return on(diskapi.ControllerPublish, volume, node, rwo)
}

func unpublish(volume, node string) diskapi.Request {
	return on(diskapi.ControllerUnpublish, volume, node, "")
}

func (s *sky) place(volume, node, zone string) {
	s.state.Apply(diskapi.Entry{Phase: diskapi.Applied, Call: diskapi.NodeGetInfo, Node: node, Args: diskapi.Args{Slots: 1, Zone: zone}})
	if volume != "" {
		s.state.Apply(diskapi.Entry{Phase: diskapi.Applied, Call: diskapi.CreateVolume, Volume: volume, Args: diskapi.Args{Name: volume, SizeBytes: DefaultSizeBytes, Zone: zone}})
	}
}

func createIn(name string, zones ...string) diskapi.Request {
	return diskapi.Request{Call: diskapi.CreateVolume, Args: diskapi.Args{Name: name, Zones: zones}}
}

func remove(volume string) diskapi.Request {
	return diskapi.Request{Call: diskapi.DeleteVolume, Volume: volume}
}

func TestRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		before func(s *sky)
		call   diskapi.Request
		want   codes.Code
	}{
		"unknown volume": {call: publish("none", "a"), want: codes.NotFound},
		"unknown node":   {call: publish("v", "none"), want: codes.NotFound},
		"attached elsewhere": {
			before: func(s *sky) { s.done(publish("v", "a")) },
			call:   publish("v", "b"), want: codes.FailedPrecondition,
		},
		"being attached elsewhere": {
			before: func(s *sky) { s.start(publish("v", "a")) },
			call:   publish("v", "b"), want: codes.FailedPrecondition,
		},
		"being detached elsewhere": {
			before: func(s *sky) { s.done(publish("v", "a")); s.start(unpublish("v", "a")) },
			call:   publish("v", "b"), want: codes.FailedPrecondition,
		},
		"exclusive beside shared": {
			before: func(s *sky) { s.done(on(diskapi.ControllerPublish, "v", "a", rwx)) },
			call:   publish("v", "b"), want: codes.FailedPrecondition,
		},
		"shared beside exclusive": {
			before: func(s *sky) { s.done(publish("v", "a")) },
			call:   on(diskapi.ControllerPublish, "v", "b", rwx), want: codes.FailedPrecondition,
		},
		"no slot": {
			before: func(s *sky) { s.done(publish("v", "a")) },
			call:   publish("w", "a"), want: codes.ResourceExhausted,
		},
		"slot taken by an attach that goes on": {
			before: func(s *sky) { s.start(publish("v", "a")) },
			call:   publish("w", "a"), want: codes.ResourceExhausted,
		},
		"slot taken by a detach that goes on": {
			before: func(s *sky) { s.done(publish("v", "a")); s.start(unpublish("v", "a")) },
			call:   publish("w", "a"), want: codes.ResourceExhausted,
		},
		"another mode": {
			before: func(s *sky) { s.done(publish("v", "a")) },
			call:   on(diskapi.ControllerPublish, "v", "a", rwx), want: codes.AlreadyExists,
		},
		"unpublish during publish": {
			before: func(s *sky) { s.start(publish("v", "a")) },
			call:   unpublish("v", "a"), want: codes.Aborted,
		},
		"publish during unpublish": {
			before: func(s *sky) { s.done(publish("v", "a")); s.start(unpublish("v", "a")) },
			call:   publish("v", "a"), want: codes.Aborted,
		},
		"publish during delete": {
			before: func(s *sky) { s.start(remove("v")) },
			call:   publish("v", "a"), want: codes.Aborted,
		},
		"delete while attached": {
			before: func(s *sky) { s.done(publish("v", "a")) },
			call:   remove("v"), want: codes.FailedPrecondition,
		},
		"delete while being attached": {
			before: func(s *sky) { s.start(publish("v", "a")) },
			call:   remove("v"), want: codes.FailedPrecondition,
		},
		"create larger under the same name": {
			call: diskapi.Request{Call: diskapi.CreateVolume, Args: diskapi.Args{Name: "v", SizeBytes: 11}}, want: codes.AlreadyExists,
		},
		"another zone": {
			before: func(s *sky) { s.place("z", "a", "north"); s.place("", "b", "south") },
			call:   publish("z", "b"), want: codes.InvalidArgument,
		},
		"a zone, and a node that has none": {
			before: func(s *sky) { s.place("z", "a", "north") },
			call:   publish("z", "b"), want: codes.InvalidArgument,
		},
		"create in other zones under the same name": {
			before: func(s *sky) { s.place("z", "a", "north") },
			call:   createIn("z", "south"), want: codes.AlreadyExists,
		},
		"create without a name":   {call: diskapi.Request{Call: diskapi.CreateVolume}, want: codes.InvalidArgument},
		"stage without a device":  {call: on(diskapi.NodeStage, "v", "a", rwo), want: codes.Internal},
		"stage of an unknown one": {call: on(diskapi.NodeStage, "none", "a", rwo), want: codes.NotFound},
		"look up an unknown one":  {call: on(diskapi.ControllerGetVolume, "none", "", ""), want: codes.NotFound},
		"unknown call":            {call: diskapi.Request{Call: "Format"}, want: codes.Unimplemented},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSky(t, Config{Slots: 1})
			if tc.before != nil {
				tc.before(s)
			}
			if d := s.decide(tc.call); d.Do != Refuse || d.Code != tc.want {
				t.Errorf("decided %+v, want %s", d, tc.want)
			}
		})
	}
}

func TestIdempotence(t *testing.T) {
	s := newSky(t, Config{Slots: 1})
	first := s.start(publish("v", "a"))
	if d := s.decide(publish("v", "a")); d.Do != Join || d.Joined != s.id-1 {
		t.Errorf("publish during the same: %+v, want it to join call %d", d, s.id-1)
	}
	s.state.Apply(first)
	if d := s.decide(publish("v", "a")); d.Do != Answer || d.Effect.Context["attachmentID"] != first.Context["attachmentID"] {
		t.Errorf("publish again: %+v", d)
	}
	s.done(unpublish("v", "a"))
	for _, r := range []diskapi.Request{unpublish("v", "a"), unpublish("v", "none"), unpublish("none", "a"), remove("none")} {
		if d := s.decide(r); d.Do != Answer {
			t.Errorf("%s of what is not there: %+v", r.Call, d)
		}
	}
	if d := s.decide(diskapi.Request{Call: diskapi.CreateVolume, Args: diskapi.Args{Name: "v", SizeBytes: 5}}); d.Do != Answer || d.Effect.Volume != "v" || d.Effect.SizeBytes != 10 {
		t.Errorf("create again: %+v", d)
	}
}

func TestSecondAttachmentHasItsOwnContext(t *testing.T) {
	s := newSky(t, Config{Slots: 1})
	first := s.start(publish("v", "a"))
	s.state.Apply(first)
	s.done(unpublish("v", "a"))
	second := s.start(publish("v", "a"))
	if first.Context["attachmentID"] == second.Context["attachmentID"] {
		t.Errorf("both attachments have context %v", first.Context)
	}
}

// A cancelled attach and a finished detach free the slot.
func TestSlotsComeBack(t *testing.T) {
	s := newSky(t, Config{Slots: 1})
	s.start(publish("v", "a"))
	s.state.Cancel(publish("v", "a"))
	s.done(publish("w", "a"))
	s.done(unpublish("w", "a"))
	s.done(publish("v", "a"))
	if s.state.Attachments() != 1 || s.state.InFlight() != 0 {
		t.Errorf("%d attachments, %d in flight", s.state.Attachments(), s.state.InFlight())
	}
}

func TestSharedAndLenient(t *testing.T) {
	shared := newSky(t, Config{Slots: 1})
	shared.done(on(diskapi.ControllerPublish, "v", "a", rwx))
	shared.done(on(diskapi.ControllerPublish, "v", "b", rwx))

	lenient := newSky(t, Config{Slots: 1, Lenient: true})
	lenient.done(publish("v", "a"))
	lenient.done(publish("v", "b"))
	lenient.done(publish("w", "a"))
	if d, _ := lenient.state.Disk("v"); len(d.Attached) != 2 {
		t.Errorf("attached %v", d.Attached)
	}
}

// A reused name gives another disk, a replay the same.
func TestHandles(t *testing.T) {
	if HandleFor("pvc-1", 3) == HandleFor("pvc-1", 9) || HandleFor("pvc-1", 3) != HandleFor("pvc-1", 3) {
		t.Error("handles don't follow name and call")
	}
	if h := HandleFor("pvc-1", 3); len(h) != len(HandlePrefix)+16 {
		t.Errorf("handle %q", h)
	}
}

func TestNodeKeepsItsSlots(t *testing.T) {
	s := newSky(t, Config{Slots: 5})
	s.state.Apply(diskapi.Entry{Phase: diskapi.Noted, Call: diskapi.SetSlots, Node: "a", Args: diskapi.Args{Slots: 3}})
	if d := s.decide(diskapi.Request{Call: diskapi.NodeGetInfo, Node: "a", Args: diskapi.Args{Slots: 9}}); d.Do != Answer || d.Effect.Slots != 3 {
		t.Errorf("decided %+v", d)
	}
	if e := s.start(diskapi.Request{Call: diskapi.NodeGetInfo, Node: "new"}); e.Slots != 5 {
		t.Errorf("a new node has %d slots, want the default", e.Slots)
	}
}

func TestZones(t *testing.T) {
	s := newSky(t, Config{Slots: 1})
	s.place("", "a", "north")
	s.place("", "b", "south")
	made := s.start(createIn("z", "south", "north"))
	s.state.Apply(made)
	if d, _ := s.state.Disk(made.Volume); d.Zone != "south" {
		t.Errorf("the disk is in zone %q, want the preferred one", d.Zone)
	}
	if d := s.decide(createIn("z", "north", "south")); d.Do != Answer || d.Effect.Volume != made.Volume || d.Effect.Zone != "south" {
		t.Errorf("create again: %+v", d)
	}
	s.done(publish(made.Volume, "b"))
	s.done(publish("v", "a"))
}
