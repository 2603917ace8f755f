// SPDX-License-Identifier: Apache-2.0

package world

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Agent is the moorage-node of a machine. It reads its NodeVolumes, looks, and writes what it
// found at the version that it has read; anything may happen in between.
//
// It leaves out all that makes the real one not see something: records that can't be read,
// mounts in namespaces of their own, and raw devices.
type Agent struct {
	Runs bool
	// Found is what it found, and has not written yet; nil: nothing. It is replaced, never
	// changed.
	Found *ledger.NodeWord
}

// Word is what the moorage-node of a node has written.
func (w *World) Word(n ledger.NodeName) (ledger.NodeWord, bool) {
	return typed[ledger.NodeWord](&w.Objects, NodeWords, string(n))
}

// CanLook says whether the moorage-node of a machine would find something else than it has
// written. What is mounted is staged, too.
func (w *World) CanLook(m *Machine) bool {
	node, exists := w.Node(m.Node)
	if !exists || !m.Powered || !m.Agent.Runs || m.Agent.Found != nil {
		return false
	}
	old, spoken := w.Word(m.Node)
	return !spoken || old.Looked != old.Look || old.NodeUID != node.UID || old.BootID != m.BootID() || !slices.Equal(m.Staged, old.Has)
}

// Look has the moorage-node of a machine read its object, and then look.
func (w *World) Look(m *Machine) bool {
	if !w.CanLook(m) {
		return false
	}
	node, _ := w.Node(m.Node)
	old, _ := w.Word(m.Node)
	m.Agent.Found = &ledger.NodeWord{
		Node: m.Node, UID: old.UID, Version: old.Version, NodeUID: node.UID, BootID: m.BootID(),
		Look: old.Look, Looked: old.Look, Has: m.Staged, Whole: true,
	}
	return true
}

// Write has the moorage-node of a machine write what it found. Where the object is not as
// it was read, it looks again.
func (w *World) Write(m *Machine) bool {
	found := m.Agent.Found
	if found == nil || !m.Agent.Runs {
		return false
	}
	m.Agent.Found = nil
	now, exists := w.Word(m.Node)
	switch {
	case !exists && found.UID == "":
		first := *found
		first.UID = w.UID()
		w.Put(first)
	case exists && now.UID == found.UID && now.Version == found.Version:
		w.Put(*found)
	}
	return true
}

// Speak has the moorage-node of a machine look and write at once.
func (w *World) Speak(m *Machine) bool { return w.Look(m) && w.Write(m) }

// StopAgent ends a machine's moorage-node: what it has written stays.
func (m *Machine) StopAgent() { m.Agent = Agent{} }

// askNode asks for a fresh look.
func (w *World) askNode(r Request) Answer {
	word, exists := w.Word(ledger.NodeName(r.Key))
	switch {
	case !exists || word.UID != r.UID:
		return Answer{Code: NotFound}
	case word.Version != r.Version:
		return Answer{Code: Conflict}
	}
	word.Look = r.Look
	return answer(w.Put(word))
}
