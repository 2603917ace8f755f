// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"os"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func step(t *rapid.T, s *Service, volumes []string) {
	volume := rapid.SampledFrom(volumes).Draw(t, "volume")
	node := rapid.SampledFrom([]string{"i-a", "i-b"}).Draw(t, "node")
	switch rapid.IntRange(0, 11).Draw(t, "step") {
	case 0:
		_, err := s.SetFault(diskapi.Fault{
			Calls:       []diskapi.Call{rapid.SampledFrom(diskapi.CSICalls()).Draw(t, "call")},
			Action:      rapid.SampledFrom([]diskapi.Action{diskapi.Fail, diskapi.FailAfter, diskapi.Ignore}).Draw(t, "action"),
			Code:        rapid.SampledFrom([]string{"Internal", "Unavailable", "NotFound"}).Draw(t, "code"),
			Probability: rapid.SampledFrom([]float64{0, 0.5}).Draw(t, "probability"),
			Times:       rapid.IntRange(0, 2).Draw(t, "times"),
		})
		if err != nil {
			t.Fatal(err)
		}
	case 1:
		if err := s.ClearFaults(""); err != nil {
			t.Fatal(err)
		}
	case 2:
		fenced := rapid.Bool().Draw(t, "fenced")
		if _, err := s.ChangeNode(node, diskapi.NodeChange{Fenced: &fenced}); err != nil {
			t.Fatal(err)
		}
	case 3, 4:
		n, err := s.Node(node)
		if err != nil {
			t.Fatal(err)
		}
		// Most writers go on from their last answer.
		w := diskapi.Write{Volume: volume, AccessMode: writer, WriteMark: s.marks(volume, node)}
		if w.Session != 0 {
			w.Written, w.Flushed = w.Written+1, w.Written
		}
		if _, err := s.Write(diskapi.Writes{Node: node, Boot: n.Boot, Volumes: []diskapi.Write{w}}); err != nil {
			t.Fatal(err)
		}
	default:
		call := rapid.SampledFrom(diskapi.CSICalls()).Draw(t, "call")
		s.Do(context.Background(), diskapi.Request{
			Call:   call,
			Volume: volume, Node: node,
			Args: diskapi.Args{
				AccessMode: rapid.SampledFrom([]string{writer, "MULTI_NODE_MULTI_WRITER"}).Draw(t, "mode"),
				Name:       rapid.SampledFrom([]string{"pvc-1", "pvc-2", "pvc-3"}).Draw(t, "name"),
				Path:       "/path", SizeBytes: rapid.SampledFrom([]int64{1 << 30, 2 << 30}).Draw(t, "size"),
				Write: new(s.marks(volume, node)), Operated: operated(t, s, call, volume, volumes),
			},
		})
	}
}

func operated(t *rapid.T, s *Service, call diskapi.Call, volume string, volumes []string) (o diskapi.Operated) {
	snapshots := []string{"snap-none"}
	groups := []string{"group-none"}
	for _, x := range s.Snapshots() {
		snapshots, groups = append(snapshots, x.Handle), append(groups, x.Group)
	}
	switch call {
	case diskapi.CreateVolume:
		if o.Snapshot = rapid.SampledFrom(append(snapshots, "")).Draw(t, "from"); o.Snapshot == "" {
			o.Source = rapid.SampledFrom(append(volumes, "")).Draw(t, "source")
		}
	case diskapi.DeleteSnapshot:
		o.Snapshot = rapid.SampledFrom(snapshots).Draw(t, "snapshot")
	case diskapi.CreateGroupSnapshot:
		o.Parts = []diskapi.Part{{Volume: volume}, {Volume: volumes[1]}}
	case diskapi.DeleteGroupSnapshot, diskapi.GetGroupSnapshot:
		o.Group = rapid.SampledFrom(groups).Draw(t, "group")
	}
	return o
}

func (s *Service) marks(volume, node string) diskapi.WriteMark {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes.Answer(volume, node).WriteMark
}

// Times are left out: they lose their monotonic part in the journal.
func view(s *Service) map[string]any {
	violations := s.Violations(0)
	for i := range violations {
		violations[i].Time = violations[i].Time.UTC().Round(0)
	}
	st := s.Stats()
	st.Seq = 0
	snapshots := s.Snapshots()
	for i := range snapshots {
		snapshots[i].Created = snapshots[i].Created.UTC().Round(0)
	}
	return map[string]any{"snapshots": snapshots, "disks": s.Disks(), "nodes": s.Nodes(), "faults": s.Faults(), "violations": violations, "stats": st}
}

// The state is always the fold of the journal, and a strict cloud never exceeds a limit or shares an
// exclusive volume.
func TestPropertyReplay(t *testing.T) {
	root := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(root, "state")
		if err != nil {
			t.Fatal(err)
		}
		c := Config{StateDir: dir, Slots: 2, AttachFor: []diskapi.Operation{diskapi.SnapshotVolume}, DetachFor: []diskapi.Operation{diskapi.ExpandVolume}}
		s, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		volumes := []string{"vol-none"}
		for _, n := range []string{"i-a", "i-b"} {
			s.Do(context.Background(), diskapi.Request{Call: diskapi.NodeGetInfo, Node: n})
		}
		for _, name := range []string{"pvc-1", "pvc-2", "pvc-3"} {
			a := s.Do(context.Background(), diskapi.Request{Call: diskapi.CreateVolume, Args: diskapi.Args{Name: name}})
			volumes = append(volumes, a.Volume)
		}
		for range rapid.IntRange(0, 40).Draw(t, "steps") {
			step(t, s, volumes)
			checkCloud(t, s)
		}
		before := view(s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err = New(c); err != nil {
			t.Fatal(err)
		}
		after := view(s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		for what := range before {
			if !reflect.DeepEqual(before[what], after[what]) {
				t.Fatalf("%s before the restart %+v\nafter it %+v", what, before[what], after[what])
			}
		}
	})
}

func checkCloud(t *rapid.T, s *Service) {
	used := map[string]int{}
	for _, d := range s.Disks() {
		for _, a := range d.Attached {
			used[a.Node]++
			if len(d.Attached) > 1 && diskapi.Exclusive(a.AccessMode) {
				t.Fatalf("exclusive disk at two nodes: %+v", d)
			}
		}
	}
	for _, n := range s.Nodes() {
		if used[n.ID] > n.Slots {
			t.Fatalf("node %s has %d of %d disks", n.ID, used[n.ID], n.Slots)
		}
	}
}
