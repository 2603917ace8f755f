// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func scriptAfter(t *testing.T, text string) *script {
	t.Helper()
	s := newScript()
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		t.Logf("> %s\n%s", line, s.command(line))
		for _, v := range s.broken() {
			t.Error(v)
		}
	}
	return s
}

func otherGetsIt(t *testing.T, s *script) {
	t.Helper()
	if s.heldAt("pv-1") != "worker-2" {
		t.Error("a day later the pod at worker-2 still waits")
	}
}

func (s *script) heldAt(pv string) ledger.NodeName {
	return s.snapshot().Volume(s.volumeNamed(pv)).Record().Node
}

const leftAtWorker1 = `
stays
node worker-1 driver=disk limit=4
node worker-2 driver=disk limit=4
pv pv-1 claim=data
pod db claim=data
reserve db node=worker-1
run
fail detach volume=pv-1
delete pod=db
run
pod db again claim=data
reserve db node=worker-1
round
round
`

// Its VolumeAttachment is deleted if no attacher will attach it. The attacher's finalizer keeps the
// PersistentVolume until then.
func TestLeftWhileItsPersistentVolumeIsDeleted(t *testing.T) {
	s := scriptAfter(t, leftAtWorker1+`
fail attach volume=pv-1
delete pod=db force
run
delete claim=data
pv pv-1 claim=data deleting
fail detach volume=pv-1 ok
run
advance 24h
run
show volume=pv-1
plan volume=pv-1
`)
	if p := s.snapshot().Volume(s.volumeNamed("pv-1")).OnNode("worker-1"); p.HasAttachments() {
		t.Error("a day later its VolumeAttachment is still there, which nobody will ever attach, and so its PersistentVolume never goes")
	}
}

func TestLeftAtADeadNode(t *testing.T) {
	for name, more := range map[string]string{
		"its machine is dead":           "",
		"its Node is deleted, too":      "delete node=worker-1\n",
		"the cloud says that it is off": "policy cuts unpublishFences\nnode worker-1 ready=unknown shutdown=true\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := scriptAfter(t, leftAtWorker1+`
fail attach volume=pv-1
delete pod=db force
run
fail detach volume=pv-1 ok
node worker-1 ready=unknown
`+more+`
pod other claim=data
reserve other node=worker-2
run
advance 7m
run
advance 24h
fail attach volume=pv-1 ok
fail attach volume=pv-1
run
show volume=pv-1
plan volume=pv-1
`)
			otherGetsIt(t, s)
		})
	}
}

// A deleted Node can't get a VolumeAttachment, nor a taint.
func TestLeftAtANodeThatIsGone(t *testing.T) {
	const other = "pod other claim=data\nreserve other node=worker-2\nrun\n"
	for name, lines := range map[string]string{
		"it was there":          "delete node=worker-1\n" + other + "advance 7m\n",
		"it was out of service": "node worker-1 ready=unknown\n" + other + "node worker-1 oos=true\nadvance 1m\nrun\ndelete node=worker-1\n",
	} {
		t.Run(name, func(t *testing.T) {
			otherGetsIt(t, scriptAfter(t, leftAtWorker1+`
csinode worker-1 gone
delete pod=db force
run
fail detach volume=pv-1 ok
`+lines+`
run
advance 24h
run
show volume=pv-1
plan volume=pv-1
`))
		})
	}
}

// Also in Cooperative mode a left volume is detached only after it is attached again.
func TestLeftAndCooperative(t *testing.T) {
	s := scriptAfter(t, leftAtWorker1+`
csinode worker-1 gone
delete pod=db force
run
cooperative
restart
fail detach volume=pv-1 ok
fail attach volume=pv-1
csinode worker-1 driver=disk limit=4
run
`)
	made := 0
	for range 10 {
		made += strings.Count(s.command("advance 10s")+s.command("run"), "create-attachment")
	}
	if made > 1 {
		t.Errorf("its VolumeAttachment was made %d times in 100 s", made)
	}
}

// It stays there until a person handles it.
func TestLeftAtAMachineThatIsReplaced(t *testing.T) {
	for name, lines := range map[string][2]string{
		"left":            {"csinode worker-1 gone\ndelete attachment=pv-1 node=worker-1\nrun\nshow volume=pv-1", "csinode worker-1 driver=disk limit=4"},
		"not left":        {"", ""},
		"the next leader": {"csinode worker-1 gone\ndelete attachment=pv-1 node=worker-1\nrun\nshow volume=pv-1", "csinode worker-1 driver=disk limit=4\nrestart"},
	} {
		t.Run(name, func(t *testing.T) {
			s := scriptAfter(t, detachFails+lines[0]+`
kubelet worker-1 down
delete pod=db force
delete node=worker-1
node worker-1 new reporting=true
`+lines[1]+`
fail detach volume=pv-1 ok
`+otherWants)
			id := s.volumeNamed("pv-1")
			if s.heldAt("pv-1") != "worker-1" || len(s.Disks.At[id]) > 1 {
				t.Errorf("held at %s, and attached to %v", s.heldAt("pv-1"), s.Disks.At[id])
			}
		})
	}
}
