// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

type pod struct {
	volume, node string
	boot         int
	mark         diskapi.WriteMark
}

func (p *pod) write(t *testing.T, s *Service) (refused string) {
	t.Helper()
	next := diskapi.Write{Volume: p.volume, AccessMode: writer, WriteMark: p.mark}
	if p.mark.Session != 0 {
		next.Written, next.Flushed = p.mark.Written+1, p.mark.Written
	}
	answers, err := s.Write(diskapi.Writes{Node: p.node, Boot: p.boot, Volumes: []diskapi.Write{next}})
	if err != nil || len(answers) != 1 {
		t.Fatalf("%d answers, %v", len(answers), err)
	}
	if p.mark = answers[0].WriteMark; answers[0].Refused == "" && p.mark.Written <= p.mark.Flushed {
		t.Errorf("everything is flushed: %+v", p.mark)
	}
	return answers[0].Refused
}

func (p *pod) end() diskapi.Request {
	last := p.mark
	last.Flushed = last.Written
	return diskapi.Request{Call: diskapi.NodeUnpublish, Volume: p.volume, Node: p.node, Args: diskapi.Args{Path: "/pod", Write: &last}}
}

func notes(s *Service) (out []string) {
	entries, _ := s.since(0)
	for _, e := range entries {
		switch e.Call {
		case diskapi.WriteBegan, diskapi.Wrote:
			out = append(out, fmt.Sprintf("%s %s %d %d", e.Call, e.Node, e.Write.Written, e.Write.Flushed))
		case diskapi.WriteRefused:
			out = append(out, fmt.Sprintf("%s %s", e.Call, e.Node))
		}
	}
	return out
}

func TestFewWritesAreNoted(t *testing.T) {
	s := newService(t, Config{Lenient: true})
	vol := diskAndNodes(t, s)
	do(t, s, publish(vol, "i-a"))
	a, b := pod{volume: vol, node: "i-a"}, pod{volume: vol, node: "i-b"}
	for range 10 {
		a.write(t, s)
	}
	do(t, s, publish(vol, "i-b"))
	a.write(t, s)
	a.write(t, s)
	b.write(t, s)
	b.write(t, s)
	a.write(t, s)
	do(t, s, diskapi.Request{Call: diskapi.ControllerUnpublish, Volume: vol, Node: "i-a"})
	for range 3 {
		if a.write(t, s) == "" {
			t.Error("a node writes from which the disk was detached")
		}
	}
	want := []string{
		"WriteBegan i-a 1 0",
		"Wrote i-a 10 9",                          // before the attach
		"Wrote i-a 11 10",                         // the first one after it
		"Wrote i-a 12 11", "WriteBegan i-b 12 11", // before another one begins
		"Wrote i-a 13 12", // after that
		"Wrote i-b 13 12", // before the detach
		"WriteRefused i-a",
	}
	if got := notes(s); !slices.Equal(got, want) {
		t.Errorf("the log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	broken := s.Violations(0)
	var rules []diskapi.Rule
	for _, v := range broken {
		rules = append(rules, v.Rule)
	}
	if !slices.Equal(rules, []diskapi.Rule{diskapi.TwoNodes, diskapi.WrittenByTwo, diskapi.WriteLost}) {
		t.Errorf("the judge saw %+v", broken)
	}
}

func TestWhoseWritesAreRefused(t *testing.T) {
	s := newService(t, Config{})
	vol := diskAndNodes(t, s)
	do(t, s, publish(vol, "i-a"))
	for _, stranger := range []pod{{volume: vol, node: "i-b"}, {volume: vol, node: "i-c"}, {volume: "vol-none", node: "i-a"}, {volume: vol, node: "i-a", boot: 1}} {
		if stranger.write(t, s) == "" {
			t.Errorf("%+v writes", stranger)
		}
	}
	a := pod{volume: vol, node: "i-a"}
	if refused := a.write(t, s); refused != "" {
		t.Fatal(refused)
	}
	off := true
	if _, err := s.ChangeNode("i-a", diskapi.NodeChange{Fenced: &off}); err != nil {
		t.Fatal(err)
	}
	if a.write(t, s) == "" {
		t.Error("a machine writes that is off")
	}
	off = false
	n, err := s.ChangeNode("i-a", diskapi.NodeChange{Fenced: &off})
	if err != nil {
		t.Fatal(err)
	}
	if a.mark = (diskapi.WriteMark{}); a.write(t, s) == "" {
		t.Error("the boot before writes")
	}
	booted := pod{volume: vol, node: "i-a", boot: n.Boot}
	if refused := booted.write(t, s); refused != "" || booted.mark.Flushed != 0 {
		t.Errorf("the machine has booted: %s, %+v", refused, booted.mark)
	}
	cut := []string{n.Address + "/32"}
	do(t, s, diskapi.Request{Call: diskapi.FenceNetwork, Args: diskapi.Args{CIDRs: cut}})
	if booted.write(t, s) == "" {
		t.Error("a machine writes that is cut off")
	}
}

// The memory of a cut-off machine does not reach the disk by its unmount.
func TestLastFlushIsRefused(t *testing.T) {
	s := newService(t, Config{})
	vol := diskAndNodes(t, s)
	do(t, s, publish(vol, "i-a"))
	a := pod{volume: vol, node: "i-a"}
	a.write(t, s)
	a.write(t, s)
	n, err := s.Node("i-a")
	if err != nil {
		t.Fatal(err)
	}
	do(t, s, diskapi.Request{Call: diskapi.FenceNetwork, Args: diskapi.Args{CIDRs: []string{n.Address + "/32"}}})
	do(t, s, a.end())
	do(t, s, diskapi.Request{Call: diskapi.ControllerUnpublish, Volume: vol, Node: "i-a"})
	do(t, s, publish(vol, "i-b"))
	b := pod{volume: vol, node: "i-b"}
	if b.write(t, s); b.mark.Flushed != 1 {
		t.Errorf("the next one finds %+v, flushed was 1", b.mark)
	}
	if broken := s.Violations(0); len(broken) > 0 {
		t.Errorf("the judge saw %+v", broken)
	}
}

// The next service has its notes, and takes the rest from the writers.
func TestWritesOutliveTheService(t *testing.T) {
	c := Config{StateDir: t.TempDir(), Slots: 4}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	vol := diskAndNodes(t, s)
	do(t, s, publish(vol, "i-a"))
	a := pod{volume: vol, node: "i-a"}
	for range 5 {
		a.write(t, s)
	}
	session := a.mark.Session
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = newService(t, c)
	if refused := a.write(t, s); refused != "" || a.mark.Session != session || a.mark.Written != 6 {
		t.Errorf("it goes on with %+v, %s", a.mark, refused)
	}
	do(t, s, a.end())
	do(t, s, diskapi.Request{Call: diskapi.ControllerUnpublish, Volume: vol, Node: "i-a"})
	do(t, s, publish(vol, "i-b"))
	b := pod{volume: vol, node: "i-b"}
	if b.write(t, s); b.mark.Flushed != 6 {
		t.Errorf("the next one finds %+v, flushed was 6", b.mark)
	}
	if broken := s.Violations(0); len(broken) > 0 {
		t.Errorf("the judge saw %+v", broken)
	}
}

// A repeated write, or a write of a former writer, changes nothing; the writer is told its progress.
func TestOldWrites(t *testing.T) {
	s := newService(t, Config{})
	vol := diskAndNodes(t, s)
	do(t, s, publish(vol, "i-a"))
	a := pod{volume: vol, node: "i-a"}
	for range 3 {
		a.write(t, s)
	}
	for _, old := range []diskapi.WriteMark{
		{},
		{Session: a.mark.Session, Written: 1},
		{Session: a.mark.Session + 1, Written: 8, Flushed: 8},
	} {
		answers, err := s.Write(diskapi.Writes{Node: "i-a", Volumes: []diskapi.Write{{Volume: vol, WriteMark: old}}})
		if err != nil || answers[0].WriteMark != a.mark {
			t.Errorf("after %+v the writer is at %+v, it was at %+v: %v", old, answers[0].WriteMark, a.mark, err)
		}
	}
	if got := notes(s); len(got) != 1 {
		t.Errorf("the log has %v", got)
	}
	// A call that ends another writer ends none.
	stranger := a
	stranger.mark.Session++
	do(t, s, stranger.end())
	if a.write(t, s); a.mark.Written != 4 {
		t.Errorf("it goes on with %+v", a.mark)
	}
}

// A refused writer never writes again, and its unmount flushes nothing; the next writer finds the earlier
// content.
func TestRefusedWriterStaysReadOnly(t *testing.T) {
	s := newService(t, Config{})
	vol := diskAndNodes(t, s)
	do(t, s, publish(vol, "i-a"))
	a := pod{volume: vol, node: "i-a"}
	a.write(t, s)
	a.write(t, s)
	do(t, s, diskapi.Request{Call: diskapi.ControllerUnpublish, Volume: vol, Node: "i-a"})
	a.write(t, s)
	do(t, s, publish(vol, "i-a"))
	for range 2 {
		if refused := a.write(t, s); refused != "a write was refused before: unmount the volume first" {
			t.Errorf("the writer is told %q", refused)
		}
	}
	do(t, s, a.end())
	next := pod{volume: vol, node: "i-a"}
	if refused := next.write(t, s); refused != "" || next.mark.Flushed != 1 {
		t.Errorf("the next one finds %+v, flushed was 1; %s", next.mark, refused)
	}
}

func TestFlushedOutlivesTheService(t *testing.T) {
	c := Config{StateDir: t.TempDir(), Slots: 4}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	vol := diskAndNodes(t, s)
	do(t, s, publish(vol, "i-a"))
	a := pod{volume: vol, node: "i-a"}
	for range 5 {
		a.write(t, s)
	}
	if _, err := s.ChangeNode("i-a", diskapi.NodeChange{Fenced: new(true)}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = newService(t, c)
	do(t, s, diskapi.Request{Call: diskapi.ControllerUnpublish, Volume: vol, Node: "i-a"})
	do(t, s, publish(vol, "i-b"))
	b := pod{volume: vol, node: "i-b"}
	if b.write(t, s); b.mark.Flushed != 4 {
		t.Errorf("the next one finds %+v, flushed was 4", b.mark)
	}
	if broken := s.Violations(0); len(broken) > 0 {
		t.Errorf("the judge saw %+v", broken)
	}
}

func TestWritesAroundAFence(t *testing.T) {
	s := newService(t, Config{})
	vol := diskAndNodes(t, s)
	do(t, s, publish(vol, "i-a"))
	a := pod{volume: vol, node: "i-a"}
	n, err := s.Node("i-a")
	if err != nil {
		t.Fatal(err)
	}
	a.write(t, s)
	a.write(t, s)
	for _, call := range []diskapi.Call{diskapi.FenceNetwork, diskapi.UnfenceNetwork} {
		do(t, s, diskapi.Request{Call: call, Args: diskapi.Args{CIDRs: []string{n.Address + "/32"}}})
	}
	a.write(t, s)
	a.write(t, s)
	want := []string{"WriteBegan i-a 1 0", "Wrote i-a 2 1", "Wrote i-a 3 2"}
	if got := notes(s); !slices.Equal(got, want) {
		t.Errorf("the log has %v, want %v", got, want)
	}
}
