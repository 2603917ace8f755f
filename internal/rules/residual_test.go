// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// The scenarios of testdata/residual are faults that no fact shows (docs/internals/invariants.md). The
// judge must find a broken rule after the last command, not before.
func TestResidualRisks(t *testing.T) {
	files, err := filepath.Glob("testdata/residual/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts in testdata/residual: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(text), "# Risk: ") {
				t.Error("it does not say which risk it is")
			}
			commands := strings.Split(strings.TrimSpace(string(text)), "\n")
			s, printed := newScript(), ""
			for i, line := range commands {
				if line != "" && !strings.HasPrefix(line, "#") {
					printed += "> " + line + "\n" + s.command(line)
				}
				switch broken, last := len(s.Judge.Faults) > 0, i == len(commands)-1; {
				case broken && !last:
					t.Fatalf("%q breaks a rule before the end: %q:\n%s", line, s.Judge.Faults, printed)
				case last && !broken:
					t.Fatalf("no rule is broken any more. If the risk has been ended, take the script away, and its item from docs/internals/invariants.md; otherwise the script no longer plays it:\n%s", printed)
				}
			}
			t.Log(s.Judge.Faults[0])
		})
	}
}

func played(t *testing.T, s *script, lines ...string) {
	t.Helper()
	printed := ""
	for _, line := range lines {
		if printed += "> " + line + "\n" + s.command(line); len(s.Judge.Faults) > 0 {
			t.Fatalf("the judge finds %q:\n%s", s.Judge.Faults, printed)
		}
	}
}

// A kubelet writes nothing if its copy of its Node equals the new status
// (pkg/kubelet/kubelet_node_status.go, tryUpdateNodeStatus). With an old copy it may mount a volume that
// volumesInUse omits.
func TestResidualRiskOfAnOldCopy(t *testing.T) {
	s := newScript()
	played(t, s, "node worker-1 driver=disk limit=4", "node worker-2 driver=disk limit=4",
		"pv pv-1 claim=data", "pod first claim=data", "bind pod=first node=worker-1", "run")
	v, m := ledger.VolumeID{Driver: "disk", Handle: "h-pv-1"}, s.machine("worker-1")
	k := s.Kubelet(m.ID)
	old := k.Node
	played(t, s, "delete pod=first")
	for range 3 {
		s.tick(m)
	}
	played(t, s, "pod job claim=data", "bind pod=job node=worker-1")
	k.SeePods()
	k.Node, k.Told = old, []ledger.VolumeID{v}
	k.Rested()
	s.mount(k)
	if !m.Uses(v) {
		t.Fatal("it is not mounted")
	}
	k.Kill() // it does nothing more in this moment
	played(t, s, "pod job phase=finished", "pod next claim=data", "bind pod=next node=worker-2")
	if s.command("run"); len(s.Judge.Faults) == 0 {
		t.Error("the judge finds no rule broken: the risk is none any more")
	}
}

// A volume mounted while the driver needed no attachments is never in volumesInUse: pluginIsAttachable
// keeps its value (pkg/kubelet/volumemanager/cache, AddPodToVolume and addVolume).
func TestResidualRiskOfADriverThatNeedsAttachments(t *testing.T) {
	s := newScript()
	played(t, s, "driver nfs attach=false", "node worker-1 driver=nfs limit=4", "node worker-2 driver=nfs limit=4",
		"pv pv-1 claim=data driver=nfs", "pod db claim=data", "bind pod=db node=worker-1", "run",
		"kubelet worker-1 down", "driver nfs attach=true", "run", "report worker-1 inUse=",
		"pod db phase=finished", "pod db2 claim=data", "bind pod=db2 node=worker-2", "run")
	name := ledger.AttachmentName(ledger.VolumeID{Driver: "nfs", Handle: "h-pv-1"}, "worker-1")
	if a, exists := s.Attachment(name); exists && !a.Deleting {
		t.Error("its VolumeAttachment stays: the risk is none any more")
	}
}

// A volume manager that stands still between moorage-node's two looks may mount an unstaged volume without
// a look at volumesAttached.
func TestResidualRiskOfAStillVolumeManager(t *testing.T) {
	s := newScript()
	played(t, s, "node worker-1 driver=disk limit=4", "node worker-2 driver=disk limit=4", "agent worker-1",
		"pv pv-1 claim=data", "pod db claim=data", "bind pod=db node=worker-1", "run",
		// The kubelet has restarted meanwhile: it finds the volume, and does not count it.
		"delete pod=db force", "delete node=worker-1", "node worker-1 new alive")
	v, m := ledger.VolumeID{Driver: "disk", Handle: "h-pv-1"}, s.machine("worker-1")
	k := s.Kubelet(m.ID)
	k.Attached, k.Uncounted = []ledger.VolumeID{v}, []ledger.VolumeID{v}
	if !m.Unpublish(v, m.Mounts[v][0]) || !m.Unstage(v) {
		t.Fatal("it is still staged")
	}
	k.Up = false // it stands still
	played(t, s, "node worker-1 reporting=true", "report worker-1 inUse=", "pod next claim=data", "bind pod=next node=worker-2")
	steps := s.nextSteps(v)
	for range 20 {
		if len(steps) == 1 && steps[0].Kind == rules.DeleteAttachment {
			break
		}
		played(t, s, "do volume=pv-1", "advance 15s")
		s.speak(m)
		steps = s.nextSteps(v)
	}
	played(t, s, "pod job claim=data", "bind pod=job node=worker-1")
	k.Up = true
	k.SeePods()
	s.mount(k)
	if !m.Uses(v) || len(steps) != 1 {
		t.Fatalf("it is not mounted, or nothing is to be deleted: %+v", steps)
	}
	if err := s.do(steps[0]); err != nil || len(s.Judge.Faults) == 0 {
		t.Errorf("%v, and the judge finds no rule broken: the risk is none any more", err)
	}
}

func (s *script) nextSteps(v ledger.VolumeID) []rules.Step {
	return s.arb.Plan(s.snapshot(), v, s.Now).Steps
}
