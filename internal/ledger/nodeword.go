// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"time"
)

// NodeWord is what moorage-node found on its node, as its NodeVolumes says: what is staged,
// mounted or published there, whatever the kubelet remembers.
type NodeWord struct {
	Node         NodeName
	UID, Version string // of the NodeVolumes object
	// NodeUID and BootID are the Node's and the machine's for which it speaks.
	NodeUID, BootID string
	// Look is the highest number that a fresh look was asked for with, and Looked the one
	// that had been read before the node looked last.
	Look, Looked int64
	// Has are the volumes that are staged, mounted or published, or may be; sorted.
	Has []VolumeID
	// Whole says that nothing could not be read but what Unread says: what is not in Has is
	// not there. The ledger keeps false where it does not know what Unread names.
	Whole bool
	// Unread are the PersistentVolumes of which a pod's record could not be read, with
	// nothing mounted beside it: their volumes may be there.
	Unread   []string
	unreadOf map[string][]VolumeID // what each of them names, and has named before
	doubts   []VolumeID            // all of that; sorted
	// KubeletStarted is the start of the kubelet for which it speaks, in seconds since 1970
	// by the node's clock; 0: not known. It is compared for being the same only.
	KubeletStarted int64
	// Repairs says that moorage-node there can unstage volumes, and may.
	Repairs bool
	// Forgotten are those of Has that no pod's folder names, and that it could unstage;
	// sorted.
	Forgotten []VolumeID
	// Orders are those to unstage volumes that the object has, and Answers what
	// moorage-node says came of them; both in the order of their volumes, each once.
	Orders  []UnstageOrder
	Answers []UnstageAnswer
}

// Forgot says whether a word names a volume that moorage-node could unstage, since the
// kubelet has forgotten it.
func (w *NodeWord) Forgot(v VolumeID) bool {
	if w == nil {
		return false
	}
	_, forgot := slices.BinarySearchFunc(w.Forgotten, v, VolumeID.Compare)
	return forgot
}

// has says whether the word names a volume.
func (w *NodeWord) has(v VolumeID) bool {
	if w == nil {
		return false
	}
	_, has := slices.BinarySearchFunc(w.Has, v, VolumeID.Compare)
	return has
}

// doubtsOf says whether the word can't say whether a volume is there, since a pod's record
// that could not be read may be of it.
func (w *NodeWord) doubtsOf(v VolumeID) bool {
	if w == nil {
		return false
	}
	_, doubts := slices.BinarySearchFunc(w.doubts, v, VolumeID.Compare)
	return doubts
}

// Answers says whether the node's word is about the Node and the boot that there are now:
// what it names is there, and it can be asked.
func (n *Node) Answers() bool {
	return n != nil && n.Exists && n.Word != nil && n.Word.NodeUID == n.UID && n.Word.BootID == n.BootID
}

// Speaks says whether the node answers and could read everything, but for pods' records of
// volumes that are known by name: see SpeaksOf.
func (n *Node) Speaks() bool { return n.Answers() && n.Word.Whole }

// SpeaksOf says whether the node answers and could read everything that may be about a
// volume: if its word does not name it, it was not there when the node looked.
func (n *Node) SpeaksOf(v VolumeID) bool { return n.Speaks() && !n.Word.doubtsOf(v) }

// SaysHas says whether the node's word names a volume. The word of another boot is about
// mounts that are gone; that of a Node made again by the same boot still holds.
func (n *Node) SaysHas(v VolumeID) bool {
	return n != nil && n.Word != nil && (n.BootID == "" || n.Word.BootID == n.BootID) && n.Word.has(v)
}

// Looked says whether the node has looked since it was asked to with a number.
func (n *Node) Looked(number int32) bool {
	return n != nil && n.Word != nil && number > 0 && n.Word.Looked >= int64(number)
}

func (w NodeWord) apply(l *Ledger, now time.Time, t *Touched) {
	var was *NodeWord
	old := l.facts.nodes.get(w.Node)
	if old != nil {
		was = old.Word
	}
	if was != nil && was.UID == w.UID && !Newer(w.Version, was.Version) {
		return
	}
	w.Has, w.Forgotten = distinct(w.Has), distinct(w.Forgotten)
	l.resolveUnread(was, &w)
	answered, spoke, owed := old.Answers(), old.Speaks(), old != nil && !old.AskedAt.IsZero()
	rec := l.node(w.Node)
	rec.Word = &w
	rec.hear(t, was, &w, now)
	switch {
	case w.Look <= w.Looked:
		rec.AskedAt = time.Time{}
	case rec.AskedAt.IsZero() || was == nil || was.UID != w.UID || was.Looked != w.Looked:
		rec.AskedAt = now
	}
	if was != nil && rec.Speaks() {
		for _, v := range was.Has {
			if !w.has(v) && !w.doubtsOf(v) {
				l.unstaged(now, t, v, w.Node)
			}
		}
	}
	for _, v := range w.Has {
		l.named(now, t, v, w.Node)
	}
	l.touchSpoken(t, rec, was, answered != rec.Answers() || spoke != rec.Speaks() || owed && rec.AskedAt.IsZero())
}

// resolveUnread finds the volumes that a word's unread records may be of: what their
// PersistentVolumes name, and what is still attached for one of that name; and what the word
// before took them for, since a PersistentVolume may be deleted while its record stays. A record
// of a PersistentVolume that was never known may be of any volume.
func (l *Ledger) resolveUnread(was, w *NodeWord) {
	w.doubts, w.unreadOf = nil, nil
	for _, name := range w.Unread {
		var of []VolumeID
		if was != nil {
			of = slices.Clone(was.unreadOf[name])
		}
		if pv := l.facts.pvs.get(name); pv != nil && pv.exists && !pv.Volume.IsZero() {
			of = distinct(append(append(of, pv.Volume), pv.outlived...))
		}
		if len(of) == 0 {
			w.Whole = false
			continue
		}
		if w.unreadOf == nil {
			w.unreadOf = map[string][]VolumeID{}
		}
		w.unreadOf[name] = of
		w.doubts = append(w.doubts, of...)
	}
	w.doubts = distinct(w.doubts)
}

// touchSpoken names the volumes that a new word of a node is about: all that are there
// where the node begins or ceases to speak, or has answered, and is not silent any more.
func (l *Ledger) touchSpoken(t *Touched, n *Node, was *NodeWord, all bool) {
	for _, v := range n.At() {
		if p := l.facts.volumes.get(v).NodeVolume(n.Name); all || was.has(v) != n.Word.has(v) || was.doubtsOf(v) != n.Word.doubtsOf(v) || p.Proof.Look != 0 {
			t.volume(v)
		}
	}
}

func (e NodeWordGone) apply(l *Ledger, _ time.Time, t *Touched) {
	old := l.facts.nodes.get(e.Node)
	if old == nil || old.Word == nil || e.UID != "" && e.UID != old.Word.UID {
		return
	}
	rec := l.node(e.Node)
	rec.Word, rec.AskedAt, rec.RefusedSince, rec.RefusedAt = nil, time.Time{}, time.Time{}, time.Time{}
	t.Volumes = append(t.Volumes, rec.At()...)
	l.sweepNode(rec)
}

// named notes that the node has said that it has a volume.
func (l *Ledger) named(now time.Time, t *Touched, v VolumeID, n NodeName) {
	if p := l.facts.volumes.get(v).NodeVolume(n); p != nil && (!p.Proof.Named || p.Proof.Unstaged) {
		l.changeNodeVolume(now, t, v, n, func(p *NodeVolume) { p.Proof.Named, p.Proof.Unstaged = true, false })
	}
}

// unstaged notes that the node has said that it has a volume no more. A word may be written
// long after the look behind it. One that does not come after a word that names the volume,
// and that after the last one who came, may be about the mount before. And while a pod lives
// that uses the volume there, its kubelet mounts it again: the first NodeStage has failed.
func (l *Ledger) unstaged(now time.Time, t *Touched, v VolumeID, n NodeName) {
	if p := l.facts.volumes.get(v).NodeVolume(n); p != nil && p.Proof.Named && !p.Proof.Unstaged && !l.usedByLivingPod(p) {
		l.changeNodeVolume(now, t, v, n, func(p *NodeVolume) { p.Proof.Unstaged = true })
	}
}

// usedByLivingPod says whether a pod uses the volume there that is neither being deleted nor
// finished.
func (l *Ledger) usedByLivingPod(p *NodeVolume) bool {
	return slices.ContainsFunc(p.Users, func(u User) bool {
		pod := l.facts.pods.get(u.Pod)
		return u.Pod != "" && pod != nil && pod.Phase == PodLive
	})
}

func (e LookRefused) apply(l *Ledger, now time.Time, t *Touched) {
	t.Own = true
	if n := l.facts.nodes.get(e.Node); n == nil || n.Word == nil {
		return
	}
	rec := l.node(e.Node)
	rec.RefusedAt = now
	if rec.RefusedSince.IsZero() {
		rec.RefusedSince = now
	}
}

// mayBeAsked notes that the API server has let a node be asked: all that waits there for a
// question that it has refused may ask.
func (l *Ledger) mayBeAsked(t *Touched, name NodeName) {
	if n := l.facts.nodes.get(name); n == nil || n.RefusedSince.IsZero() {
		return
	}
	rec := l.node(name)
	rec.RefusedSince, rec.RefusedAt = time.Time{}, time.Time{}
	t.Volumes = append(t.Volumes, rec.At()...)
}

func (e LookAsked) apply(l *Ledger, now time.Time, t *Touched) {
	t.Own = true
	l.mayBeAsked(t, e.Node)
	p := l.facts.volumes.get(e.Volume).NodeVolume(e.Node)
	if p == nil || !p.provable(e.UID, e.Version) || p.Proof.Stage == ProofNone || e.Look > MaxNumber {
		return
	}
	l.changeNodeVolume(now, t, e.Volume, e.Node, func(p *NodeVolume) { p.Proof.Look = int32(e.Look) })
}
