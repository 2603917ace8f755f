// SPDX-License-Identifier: Apache-2.0

package world

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Agent is a machine's moorage-node. It omits the causes by which the real moorage-node misses a volume:
// mounts in their own namespaces, and raw devices.
type Agent struct {
	Runs bool
	// Blind: it can't read something, such as a folder, and all its reports say so.
	Blind bool
	// Unread is replaced, never changed.
	Unread []string
	// Torn are volumes with half-written staging records: the folder's name gives the volume. It is
	// replaced, never changed.
	Torn []ledger.VolumeID
	// Found is nil without unwritten findings. It is replaced, never changed.
	Found *ledger.NodeWord
}

func (w *World) Word(n ledger.NodeName) (ledger.NodeWord, bool) {
	return typed[ledger.NodeWord](&w.Objects, NodeWords, string(n))
}

func (w *World) CanLook(m *Machine) bool {
	if _, exists := w.Node(m.Node); !exists || !m.Powered || !m.Agent.Runs || m.Agent.Found != nil {
		return false
	}
	old, spoken := w.Word(m.Node)
	found := w.found(m)
	return !spoken || old.Looked != found.Looked || old.NodeUID != found.NodeUID || old.BootID != found.BootID ||
		old.Whole != found.Whole || !slices.Equal(old.Unread, found.Unread) || !slices.Equal(old.Has, found.Has) ||
		!slices.Equal(old.Mounted, found.Mounted) || !slices.Equal(old.Forgotten, found.Forgotten)
}

func (w *World) Look(m *Machine) bool {
	if !w.CanLook(m) {
		return false
	}
	m.Agent.Found = w.found(m)
	return true
}

func (w *World) found(m *Machine) *ledger.NodeWord {
	node, _ := w.Node(m.Node)
	old, _ := w.Word(m.Node)
	found := ledger.NodeWord{
		Node: m.Node, UID: old.UID, Version: old.Version, NodeUID: node.UID, BootID: m.BootID(),
		Look: old.Look, Looked: old.Look, Has: m.told(), Whole: !m.Agent.Blind, Unread: m.unread(),
	}
	found.Forgotten = m.forgotten()
	found.Mounted = slices.DeleteFunc(slices.Clone(found.Has), func(v ledger.VolumeID) bool { return !slices.Contains(m.Staged, v) })
	return &found
}

func (m *Machine) unread() []ledger.Unread {
	var list []ledger.Unread
	for _, name := range m.Agent.Unread {
		list = append(list, ledger.Unread{PersistentVolume: name})
	}
	for _, v := range m.Agent.Torn {
		list = append(list, ledger.Unread{Driver: v.Driver, Digest: ledger.HandleDigest(v.Handle), There: slices.Contains(m.Staged, v), Forgotten: slices.Contains(m.Staged, v) && len(m.Mounts[v]) == 0})
	}
	return list
}

func (m *Machine) told() []ledger.VolumeID {
	staged := m.recorded()
	if len(m.Agent.Torn) == 0 {
		return staged
	}
	return slices.DeleteFunc(slices.Clone(staged), func(v ledger.VolumeID) bool { return slices.Contains(m.Agent.Torn, v) })
}

func (m *Machine) recorded() []ledger.VolumeID {
	list := m.Staged
	for _, v := range m.Left {
		list = include(list, v, ledger.VolumeID.Compare)
	}
	return list
}

func (m *Machine) forgotten() []ledger.VolumeID {
	return slices.DeleteFunc(slices.Clone(m.recorded()), func(v ledger.VolumeID) bool { return len(m.Mounts[v]) > 0 })
}

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

func (w *World) Speak(m *Machine) bool { return w.Look(m) && w.Write(m) }

func (m *Machine) StopAgent() {
	m.Agent = Agent{Blind: m.Agent.Blind, Unread: m.Agent.Unread, Torn: m.Agent.Torn}
}

func (w *World) askNode(r Request) Answer {
	word, exists := w.Word(ledger.NodeName(r.Key))
	switch {
	case !exists:
		return Answer{Code: NotFound}
	case word.UID != r.UID || word.Version != r.Version:
		return Answer{Code: Conflict}
	case r.Look > ledger.MaxNumber:
		return Answer{Code: Forbidden}
	}
	word.Look = r.Look
	return answer(w.Put(word))
}
