// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

const writer = "SINGLE_NODE_MULTI_WRITER"

func newService(t *testing.T, c Config) *Service {
	t.Helper()
	if c.StateDir == "" {
		c.StateDir = t.TempDir()
	}
	if c.Slots == 0 {
		c.Slots = 4
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func do(t *testing.T, s *Service, r diskapi.Request) diskapi.Answer {
	t.Helper()
	a := s.Do(t.Context(), r)
	if a.Code != codes.OK.String() {
		t.Fatalf("%s: %s %s", r.Call, a.Code, a.Message)
	}
	return a
}

func diskAndNodes(t *testing.T, s *Service) string {
	t.Helper()
	for _, n := range []string{"i-a", "i-b"} {
		do(t, s, diskapi.Request{Call: diskapi.NodeGetInfo, Node: n})
	}
	return do(t, s, diskapi.Request{Call: diskapi.CreateVolume, Args: diskapi.Args{Name: "pvc-1"}}).Volume
}

func publish(volume, node string) diskapi.Request {
	return diskapi.Request{Call: diskapi.ControllerPublish, Volume: volume, Node: node, Args: diskapi.Args{AccessMode: writer}}
}

func waitFor(t *testing.T, s *Service, f diskapi.Filter) diskapi.Entry {
	t.Helper()
	var seen uint64
	for {
		entries, grown := s.since(seen)
		for _, e := range entries {
			if seen = e.Seq; f.Matches(e) {
				return e
			}
		}
		select {
		case <-grown:
		case <-t.Context().Done():
			t.Fatalf("no entry %v", f.Values())
		}
	}
}

func phases(s *Service, call diskapi.Call) []diskapi.Phase {
	entries, _ := s.since(0)
	var out []diskapi.Phase
	for _, e := range entries {
		if e.Call == call {
			out = append(out, e.Phase)
		}
	}
	return out
}

// The caller gives up, and the attach is applied all the same.
func TestLateEffect(t *testing.T) {
	s := newService(t, Config{Latencies: map[diskapi.Call]time.Duration{diskapi.ControllerPublish: 300 * time.Millisecond}})
	vol := diskAndNodes(t, s)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if a := s.Do(gone, publish(vol, "i-a")); a.Code != codes.Canceled.String() {
		t.Fatalf("code %s", a.Code)
	}
	waitFor(t, s, diskapi.Filter{Call: diskapi.ControllerPublish, Phase: diskapi.Applied})
	want := []diskapi.Phase{diskapi.Arrived, diskapi.Returned, diskapi.Applied}
	if got := phases(s, diskapi.ControllerPublish); !reflect.DeepEqual(got, want) {
		t.Errorf("phases %v, want %v", got, want)
	}
}

func TestSameCallJoins(t *testing.T) {
	s := newService(t, Config{Latencies: map[diskapi.Call]time.Duration{diskapi.ControllerPublish: 100 * time.Millisecond}})
	vol := diskAndNodes(t, s)
	var both sync.WaitGroup
	answers := make([]diskapi.Answer, 2)
	for i := range answers {
		both.Go(func() { answers[i] = s.Do(t.Context(), publish(vol, "i-a")) })
	}
	both.Wait()
	for _, a := range answers {
		if a.Code != codes.OK.String() || a.Context["attachmentID"] != answers[0].Context["attachmentID"] {
			t.Errorf("answers %+v", answers)
		}
	}
	applied := 0
	for _, p := range phases(s, diskapi.ControllerPublish) {
		if p == diskapi.Applied {
			applied++
		}
	}
	if applied != 1 {
		t.Errorf("attached %d times", applied)
	}
}

func TestReplay(t *testing.T) {
	dir := t.TempDir()
	s := newService(t, Config{StateDir: dir})
	vol := diskAndNodes(t, s)
	do(t, s, publish(vol, "i-a"))
	s.Do(t.Context(), publish(vol, "i-b"))
	if _, err := s.SetFault(diskapi.Fault{Calls: []diskapi.Call{diskapi.NodeStage}, Action: diskapi.Fail, Code: "Internal", Skip: 1}); err != nil {
		t.Fatal(err)
	}
	do(t, s, diskapi.Request{Call: diskapi.NodeStage, Volume: vol, Node: "i-a", Args: diskapi.Args{Path: "/stage"}})
	slots, fenced := 7, true
	if _, err := s.ChangeNode("i-b", diskapi.NodeChange{Slots: &slots, Fenced: &fenced}); err != nil {
		t.Fatal(err)
	}
	before := []any{s.Disks(), s.Nodes(), s.Faults(), s.Violations(0), s.Stats().Calls}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = newService(t, Config{StateDir: dir})
	after := []any{s.Disks(), s.Nodes(), s.Faults(), s.Violations(0), s.Stats().Calls}
	// Times lose their monotonic part on the way.
	for i, v := range before[3].([]diskapi.Violation) {
		before[3].([]diskapi.Violation)[i].Time = v.Time.Round(0)
		if got := after[3].([]diskapi.Violation)[i].Time; !got.Equal(v.Time) {
			t.Errorf("violation %d at %s, was %s", i, got, v.Time)
		}
		after[3].([]diskapi.Violation)[i].Time = v.Time.Round(0)
	}
	for i := range before {
		if !reflect.DeepEqual(before[i], after[i]) {
			t.Errorf("before %+v\nafter  %+v", before[i], after[i])
		}
	}
}

// The next process closes an open call as in doubt, and forgets its operation.
func TestOpenCallIsLost(t *testing.T) {
	dir := t.TempDir()
	s := newService(t, Config{StateDir: dir, Latencies: map[diskapi.Call]time.Duration{diskapi.ControllerPublish: time.Hour}})
	vol := diskAndNodes(t, s)
	go s.Do(context.Background(), publish(vol, "i-a"))
	waitFor(t, s, diskapi.Filter{Call: diskapi.ControllerPublish, Phase: diskapi.Arrived})
	// A killed process leaves its journal as it is now.
	data, err := os.ReadFile(filepath.Join(dir, "journal.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	next := t.TempDir()
	if err := os.WriteFile(filepath.Join(next, "journal.jsonl"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	s = newService(t, Config{StateDir: next})
	e := waitFor(t, s, diskapi.Filter{Call: diskapi.ControllerPublish, Phase: diskapi.Returned})
	if e.Outcome != diskapi.Lost {
		t.Errorf("outcome %s", e.Outcome)
	}
	do(t, s, publish(vol, "i-a"))
	do(t, s, diskapi.Request{Call: diskapi.ControllerUnpublish, Volume: vol, Node: "i-a"})
	do(t, s, publish(vol, "i-b"))
	if v := s.Violations(0); len(v) > 0 {
		t.Errorf("violations %+v", v)
	}
}

// Without a journal entry nothing is done, and nobody waits for it.
func TestFullDisk(t *testing.T) {
	s := newService(t, Config{Latencies: map[diskapi.Call]time.Duration{diskapi.ControllerPublish: 200 * time.Millisecond}})
	vol := diskAndNodes(t, s)
	answer := make(chan diskapi.Answer, 1)
	go func() { answer <- s.Do(context.Background(), publish(vol, "i-a")) }()
	waitFor(t, s, diskapi.Filter{Call: diskapi.ControllerPublish, Phase: diskapi.Arrived})
	// A closed journal fails like a journal on a full disk.
	if err := s.journal.Close(); err != nil {
		t.Fatal(err)
	}
	if a := <-answer; a.Code != codes.Unavailable.String() {
		t.Errorf("the attach ended with %s", a.Code)
	}
	if a := s.Do(t.Context(), publish(vol, "i-a")); a.Code != codes.Unavailable.String() {
		t.Errorf("the next one ended with %s", a.Code)
	}
	if st := s.Stats(); st.Attachments != 0 || st.InFlight != 0 {
		t.Errorf("%d attachments, %d in flight", st.Attachments, st.InFlight)
	}
}

func TestConfigSaysWhatIsWrong(t *testing.T) {
	for name, c := range map[string]Config{
		"no folder": {Slots: 1},
		"no slots":  {StateDir: "x"},
		"negative":  {StateDir: "x", Slots: 1, Latencies: map[diskapi.Call]time.Duration{diskapi.NodeStage: -1}},
	} {
		if _, err := New(c); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestParallel(t *testing.T) {
	s := newService(t, Config{Parallel: 2, Latencies: map[diskapi.Call]time.Duration{diskapi.ControllerPublish: time.Hour}})
	first := diskAndNodes(t, s)
	second := do(t, s, diskapi.Request{Call: diskapi.CreateVolume, Args: diskapi.Args{Name: "pvc-2"}}).Volume
	third := do(t, s, diskapi.Request{Call: diskapi.CreateVolume, Args: diskapi.Args{Name: "pvc-3"}}).Volume
	for _, volume := range []string{first, second} {
		go s.Do(t.Context(), publish(volume, "i-a"))
		waitFor(t, s, diskapi.Filter{Call: diskapi.ControllerPublish, Phase: diskapi.Arrived, Volume: volume})
	}
	for deadline := time.Now().Add(20 * time.Second); len(s.turns) < 2; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("the two attaches never had their turns")
		}
	}
	if err := s.SetLatency(diskapi.Latency{Call: diskapi.ControllerPublish}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	waiting := make(chan diskapi.Answer)
	go func() { waiting <- s.Do(ctx, publish(third, "i-a")) }()
	waitFor(t, s, diskapi.Filter{Call: diskapi.ControllerPublish, Phase: diskapi.Arrived, Volume: third})
	do(t, s, diskapi.Request{Call: diskapi.CreateVolume, Args: diskapi.Args{Name: "pvc-4"}}) // others need no turn
	cancel()
	if a := <-waiting; a.Code != codes.Canceled.String() {
		t.Errorf("the third attach was answered %s: it did not wait", a.Code)
	}
	<-s.turns // one of the two is over
	waitFor(t, s, diskapi.Filter{Call: diskapi.ControllerPublish, Phase: diskapi.Applied, Volume: third})
	s.turns <- struct{}{}
}
