// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"
)

// NodeWord is moorage-node's NodeMountReport of staged, mounted or published volumes, whatever the kubelet
// remembers.
type NodeWord struct {
	Node         NodeName
	UID, Version string // of the NodeMountReport object
	// NodeUID and BootID are the report's Node and boot.
	NodeUID, BootID string
	// Look is the highest question for a look, Looked the number read before the last look.
	Look, Looked int64
	// Has are, sorted, the volumes that may be staged, mounted or published.
	Has []VolumeID
	// Mounted are, sorted, the volumes in Has that may be mounted. Others have only folders and records:
	// these outlive a reboot.
	Mounted []VolumeID
	// Whole: a volume missing in Has and Unread is not there. False if the ledger does not know an unread
	// record's volume.
	Whole bool
	// Unread are unreadable records of identified volumes. These may be there.
	Unread []Unread
	// Unlisted are further volumes that may be there, sorted by driver.
	Unlisted []Unlisted
	allElse  bool                     // as reported
	unreadOf map[unreadKey][]VolumeID // each name's volumes, now and before
	doubts   []VolumeID               // perhaps there; sorted
	theres   []VolumeID               // there; sorted
	// Forgotten are, sorted, the volumes in Has without a pod's folder.
	Forgotten []VolumeID
}

// Unread is an unreadable or missing record. Its folder names a PersistentVolume, or a driver and a
// handle's digest.
type Unread struct {
	PersistentVolume string
	// Pod is the UID of the folder's pod, or empty.
	Pod string
	// Digest is the handle's sha256 in hexadecimal; empty with PersistentVolume.
	Driver, Digest string
	// There: the volume has something there apart from the record. Forgotten: no pod's folder names it.
	There, Forgotten bool
}

// Unlisted has, sorted, the first letters of the digests (HandleDigest) of a driver's volumes.
type Unlisted struct {
	Driver  string
	Digests []string
}

// unlistedLetters is how many letters of a digest an Unlisted has.
const unlistedLetters = 8

type unreadKey struct{ persistentVolume, pod string }

func (u *Unread) key() unreadKey { return unreadKey{u.PersistentVolume, u.Pod} }

// digested finds an unreadable record that counts by the handle's digest, computed once.
func (w *NodeWord) digested(v VolumeID, counts func(*Unread) bool) bool {
	digest := ""
	return slices.ContainsFunc(w.Unread, func(u Unread) bool {
		if u.Digest == "" || u.Driver != v.Driver || !counts(&u) {
			return false
		}
		if digest == "" {
			digest = HandleDigest(v.Handle)
		}
		return u.Digest == digest
	})
}

// HandleDigest is a handle's sha256, the name of the folder where kubelets since 1.24 stage a volume with a
// file system (pkg/volume/csi/csi_attacher.go, makeDeviceMountPath).
func HandleDigest(handle string) string {
	sum := sha256.Sum256([]byte(handle))
	return hex.EncodeToString(sum[:])
}

// Forgot says whether a reported volume is unknown to a starting kubelet.
func (w *NodeWord) Forgot(v VolumeID) bool {
	if w == nil {
		return false
	}
	if _, forgot := slices.BinarySearchFunc(w.Forgotten, v, VolumeID.Compare); forgot {
		return true
	}
	forgotten := func(u *Unread) bool { return u.There && u.Forgotten }
	return w.digested(v, forgotten) || slices.ContainsFunc(w.Unread, func(u Unread) bool {
		return forgotten(&u) && u.Digest == "" && slices.Contains(w.unreadOf[u.key()], v)
	})
}

func (w *NodeWord) has(v VolumeID) bool {
	if w == nil {
		return false
	}
	for _, list := range [][]VolumeID{w.Has, w.theres} {
		if _, has := slices.BinarySearchFunc(list, v, VolumeID.Compare); has {
			return true
		}
	}
	return w.digested(v, func(u *Unread) bool { return u.There }) || w.Unlists(v)
}

// Unlists says whether a volume is among the Unlisted.
func (w *NodeWord) Unlists(v VolumeID) bool {
	i, of := slices.BinarySearchFunc(w.Unlisted, v.Driver, func(u Unlisted, driver string) int { return strings.Compare(u.Driver, driver) })
	if !of {
		return false
	}
	_, found := slices.BinarySearch(w.Unlisted[i].Digests, HandleDigest(v.Handle)[:unlistedLetters])
	return found
}

// UnlistsOf says whether a driver has volumes among the Unlisted.
func (w *NodeWord) UnlistsOf(driver string) bool {
	return slices.ContainsFunc(w.Unlisted, func(u Unlisted) bool { return u.Driver == driver })
}

// doubtsOf: an unreadable record may be the volume's.
func (w *NodeWord) doubtsOf(v VolumeID) bool {
	if w == nil {
		return false
	}
	if _, doubts := slices.BinarySearchFunc(w.doubts, v, VolumeID.Compare); doubts {
		return true
	}
	return w.digested(v, func(u *Unread) bool { return !u.There })
}

// Answers: the report is about the present Node and boot, and can be renewed.
func (n *Node) Answers() bool {
	return n != nil && n.Exists && n.Word != nil && n.Word.NodeUID == n.UID && n.BootID != "" && n.Word.BootID == n.BootID
}

// Speaks: the node answers and could read all but known volumes' records, see SpeaksOf.
func (n *Node) Speaks() bool { return n.Answers() && n.Word.Whole }

// SpeaksOf: the node answers and could read everything about a volume. If its report omits it, it was not
// there.
func (n *Node) SpeaksOf(v VolumeID) bool { return n.Speaks() && !n.Word.doubtsOf(v) }

// SaysHas says whether the report names a volume. Another boot's mounts are over; a Node made again in the
// same boot keeps its report.
func (n *Node) SaysHas(v VolumeID) bool {
	return n != nil && n.Word != nil && (n.BootID == "" || n.Word.BootID == n.BootID) && n.Word.has(v)
}

// Looked says whether the node has looked since a question.
func (n *Node) Looked(number int32) bool {
	return n != nil && n.Word != nil && number > 0 && n.Word.Looked >= int64(number)
}

// NextNumber is the next question's. The API refuses a number that it can't hold.
func (n *Node) NextNumber() int64 {
	if n == nil || n.Word == nil {
		return 1
	}
	return min(max(n.Word.Look, n.Word.Looked), MaxNumber) + 1
}

// MaxNumber is the API's highest number of a question.
const MaxNumber = 1<<31 - 1

func (w NodeWord) apply(l *Ledger, now time.Time, t *Touched) {
	var was *NodeWord
	old := l.facts.nodes.get(w.Node)
	if old != nil {
		was = old.Word
	}
	if was != nil && was.UID == w.UID && !Newer(w.Version, was.Version) {
		return
	}
	w.Has, w.Mounted, w.Forgotten = distinct(w.Has), distinct(w.Mounted), distinct(w.Forgotten)
	w.allElse = w.Whole
	l.resolveUnread(was, &w)
	l.noteUnread(&w)
	answered, spoke, owed := old.Answers(), old.Speaks(), old != nil && !old.AskedAt.IsZero()
	rec := l.node(w.Node)
	rec.Word = &w
	l.keepAllAlone(t, was, &w, w.Node)
	switch {
	case w.Look <= w.Looked:
		rec.AskedAt = time.Time{}
	case rec.AskedAt.IsZero() || was == nil || was.UID != w.UID || was.Looked != w.Looked:
		rec.AskedAt = now
	}
	for _, v := range rec.At() {
		switch {
		case w.has(v):
			l.named(now, t, v, w.Node)
		case was.has(v) && rec.SpeaksOf(v):
			l.unstaged(now, t, v, w.Node)
		}
		l.looked(now, t, v, rec)
	}
	l.touchSpoken(t, rec, was, answered != rec.Answers() || spoke != rec.Speaks() || owed && rec.AskedAt.IsZero())
}

// resolveUnread finds unread records' possible volumes: by PersistentVolume, its attachments, and the
// former report, since a record may outlive its PersistentVolume. A volume in a pod's own spec is never
// attached. An always unknown name may be any volume's.
func (l *Ledger) resolveUnread(was, w *NodeWord) {
	w.Whole, w.unreadOf, w.doubts, w.theres = w.allElse, nil, nil, nil
	for i := range w.Unread {
		u := &w.Unread[i]
		if u.Digest != "" {
			continue
		}
		key := u.key()
		var of []VolumeID
		known := false
		if was != nil {
			of, known = was.unreadOf[key]
		}
		switch pv := l.facts.pvs.get(u.PersistentVolume); {
		case pv != nil && pv.exists && !pv.Volume.IsZero():
			of = distinct(slices.Concat(of, []VolumeID{pv.Volume}, l.attachedUnder(pv)))
		case !known && (pv != nil || !l.isOwnVolume(u)):
			w.Whole = false
			continue
		case pv != nil:
			of = distinct(slices.Concat(of, l.attachedUnder(pv)))
		}
		if w.unreadOf == nil {
			w.unreadOf = map[unreadKey][]VolumeID{}
		}
		w.unreadOf[key] = of
		if u.There {
			w.theres = append(w.theres, of...)
		} else {
			w.doubts = append(w.doubts, of...)
		}
	}
	w.doubts, w.theres = distinct(w.doubts), distinct(w.theres)
}

// attachedUnder are volumes with attachments for a PersistentVolume that has another volume now.
func (l *Ledger) attachedUnder(pv *pvRecord) []VolumeID {
	list := slices.Clip(pv.outlived)
	for _, name := range pv.attachments {
		if at := l.facts.attachments.get(name).at(); at.IsReal() {
			list = append(list, at)
		}
	}
	return list
}

// isOwnVolume says whether a record is of a CSI volume in its pod's own spec.
func (l *Ledger) isOwnVolume(u *Unread) bool {
	pod := l.facts.pods.get(u.Pod)
	return u.Pod != "" && pod != nil && slices.Contains(pod.OwnCSI, u.PersistentVolume)
}

func (l *Ledger) noteUnread(w *NodeWord) {
	if len(w.Unread) > 0 {
		l.facts.unread = add(l.facts.unread, w.Node)
	} else {
		l.facts.unread = drop(l.facts.unread, w.Node)
	}
}

// resolveUnreadAgain follows the first sight of an identifying PersistentVolume or pod.
func (l *Ledger) resolveUnreadAgain(now time.Time, t *Touched, about func(*Unread) bool) {
	for _, name := range l.facts.unread {
		was := l.facts.nodes.get(name).Word
		if !slices.ContainsFunc(was.Unread, func(u Unread) bool { return about(&u) }) {
			continue
		}
		rec, word := l.node(name), *was
		spoke := rec.Speaks()
		l.resolveUnread(was, &word)
		rec.Word = &word
		l.lookedForAll(now, t, rec)
		l.touchSpoken(t, rec, was, spoke != rec.Speaks())
	}
}

// touchSpoken touches the volumes of a new report: all there if the node begins or ceases to speak, or ends
// its silence.
func (l *Ledger) touchSpoken(t *Touched, n *Node, was *NodeWord, all bool) {
	for _, v := range n.At() {
		if p := l.facts.volumes.get(v).OnNode(n.Name); all || was.has(v) != n.Word.has(v) || was.doubtsOf(v) != n.Word.doubtsOf(v) || p.Proof.Look != 0 {
			t.volume(v)
		}
	}
}

func (e NodeWordGone) apply(l *Ledger, _ time.Time, t *Touched) {
	old := l.facts.nodes.get(e.Node)
	if old == nil || old.Word == nil || e.UID != "" && e.UID != old.Word.UID {
		return
	}
	rec, was := l.node(e.Node), old.Word
	l.facts.unread = drop(l.facts.unread, e.Node)
	rec.Word, rec.AskedAt, rec.RefusedSince, rec.RefusedAt = nil, time.Time{}, time.Time{}, time.Time{}
	l.keepAllAlone(t, was, nil, e.Node)
	t.Volumes = append(t.Volumes, rec.At()...)
	l.sweepNode(rec)
}

// named notes that the node has reported a volume.
func (l *Ledger) named(now time.Time, t *Touched, v VolumeID, n NodeName) {
	if p := l.facts.volumes.get(v).OnNode(n); p != nil && (!p.Proof.Named || p.Proof.Unstaged) {
		l.changeVolumeOnNode(now, t, v, n, func(p *VolumeOnNode) { p.Proof.Named, p.Proof.Unstaged = true, false })
	}
}

// lookedForAll follows a change in whether a report is about this Node, or in the volumes that it can't
// speak for.
func (l *Ledger) lookedForAll(now time.Time, t *Touched, n *Node) {
	for _, v := range n.At() {
		l.looked(now, t, v, n)
	}
}

// looked notes a finding after a question. A second look in a row without the volume shows no mount,
// whatever the kubelet lists (Snapshot.Unknown).
func (l *Ledger) looked(now time.Time, t *Touched, v VolumeID, n *Node) {
	p := l.facts.volumes.get(v).OnNode(n.Name)
	if p == nil || p.Proof.Look == 0 {
		return
	}
	proof, looked := p.Proof, n.Looked(p.Proof.Look)
	switch {
	case !n.SpeaksOf(v) || n.SaysHas(v) || !looked && !proof.Again: // the asked moorage-node may be gone
		proof.Again, proof.vacant = false, 0
	case looked && proof.vacant == 0:
		proof.vacant = now.Sub(l.facts.epoch) + 1
	case looked && proof.Again && l.facts.unknownHere(l.facts.volumes.get(v), p):
		l.trust(now, t, n.Name, v)
	}
	if proof != p.Proof {
		l.changeVolumeOnNode(now, t, v, n.Name, func(p *VolumeOnNode) { p.Proof = proof })
	}
}

// unstaged: the report no longer names a volume. A report may be much later than its look, so it counts
// only after a report that named the volume since the last user came. A living pod's kubelet mounts again:
// the first NodeStage has failed.
func (l *Ledger) unstaged(now time.Time, t *Touched, v VolumeID, n NodeName) {
	if p := l.facts.volumes.get(v).OnNode(n); p != nil && p.Proof.Named && !p.Proof.Unstaged && !l.usedByLivingPod(p) {
		l.changeVolumeOnNode(now, t, v, n, func(p *VolumeOnNode) { p.Proof.Unstaged = true })
	}
}

// usedByLivingPod ignores deleted and finished pods.
func (l *Ledger) usedByLivingPod(p *VolumeOnNode) bool {
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

// mayBeAsked: refused questions may be asked again.
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
	p := l.facts.volumes.get(e.Volume).OnNode(e.Node)
	if p == nil || !p.provable(e.UID, e.Version) || p.Proof.Stage == ProofNone || e.Look > MaxNumber {
		return
	}
	again := !e.Vacant.IsZero() && l.facts.vacant(p).Equal(e.Vacant)
	l.changeVolumeOnNode(now, t, e.Volume, e.Node, func(p *VolumeOnNode) { p.Proof.Look, p.Proof.Again = int32(e.Look), again })
	l.looked(now, t, e.Volume, l.facts.nodes.get(e.Node)) // its answer may have come first
}
