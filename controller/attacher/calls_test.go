// SPDX-License-Identifier: Apache-2.0

package attacher

import "testing"

// Without its finalizer, a VolumeAttachment's inputs are dropped: the node's next attachment answers for
// it.
func TestCallsOfStrippedAttachmentsAreForgotten(t *testing.T) {
	s := newStage(t)
	commands := []string{"given create pv pv1 stamped", "given create csinode node1 id=nodeID1"}
	for range 3 {
		commands = append(commands, "when create va va1 pv=pv1 node=node1", "when delete va va1", "when finalizer va va1 -ours")
	}
	commands = append([]string{"given driver unpublish: Internal, Internal, Internal, Internal, Internal, Internal"}, commands...)
	s.play(append(commands, "when create va va1 pv=pv1 node=node1"))
	if e := s.engine; len(e.calls) != 1 || len(e.failed) > 1 || e.tracker.Len() != 1 {
		t.Errorf("the calls of %d VolumeAttachments are kept, and the failures of %d, where the Tracker knows %d", len(e.calls), len(e.failed), e.tracker.Len())
	}
}
