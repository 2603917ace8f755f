// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"
)

// NodeWord is moorage-node's report in its NodeMountReport: the volumes that are staged, mounted or published
// at its node, regardless of the kubelet's memory.
type NodeWord struct {
	Node         NodeName
	UID, Version string // of the NodeMountReport object
	// NodeUID and BootID are the report's Node and boot.
	NodeUID, BootID string
	// Look is the highest number of a question for a fresh look, and Looked the number that
	// moorage-node had read before its last look.
	Look, Looked int64
	// Has are the volumes that are staged, mounted or published, or may be; sorted.
	Has []VolumeID
	// Mounted are the volumes in Has that are, or may be, mounted; sorted. The others have only folders and
	// records, which outlive a reboot.
	Mounted []VolumeID
	// Whole says that everything could be read except Unread: a volume missing in Has is not there. The
	// ledger keeps false if it does not know the volume of an unread record.
	Whole bool
	// Unread are the unreadable records whose folders identify their volumes: these are there, or may be.
	Unread []Unread
	// Unlisted are further volumes that are there, or may be, sorted by driver.
	Unlisted []Unlisted
	allElse  bool                     // Whole, as reported
	unreadOf map[unreadKey][]VolumeID // each name's volumes, now and before; none: no attached volume
	doubts   []VolumeID               // volumes of names that may be there; sorted
	theres   []VolumeID               // volumes of names that are there; sorted
	// Forgotten are the volumes in Has that no pod's folder names; sorted.
	Forgotten []VolumeID
}

// Unread is a record of a node that could not be read, or is missing beside a mount. Its folder has the
// name of a PersistentVolume; or it is a driver's folder with the digest of a handle, which identifies
// exactly one volume.
type Unread struct {
	PersistentVolume string
	// Pod is the UID of the record's pod; empty: the folder is no pod's.
	Pod string
	// Digest is the sha256 of the handle in hexadecimal digits; empty if PersistentVolume is set.
	Driver, Digest string
	// There says that the volume has something there, regardless of the record, and Forgotten that no pod's
	// folder names it.
	There, Forgotten bool
}

// Unlisted are a driver's volumes: the first letters of each handle's digest (HandleDigest), sorted.
type Unlisted struct {
	Driver  string
	Digests []string
}

// unlistedLetters is how many letters of a digest an Unlisted has.
const unlistedLetters = 8

type unreadKey struct{ persistentVolume, pod string }

func (u *Unread) key() unreadKey { return unreadKey{u.PersistentVolume, u.Pod} }

// digested says whether, by the digest of its handle, a volume has an unreadable record for which counts is
// true. It is computed once for all records.
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

// HandleDigest is the name of the folder in which kubelets since 1.24 stage a volume with a file system
// (pkg/volume/csi/csi_attacher.go, makeDeviceMountPath): the sha256 of its handle.
func HandleDigest(handle string) string {
	sum := sha256.Sum256([]byte(handle))
	return hex.EncodeToString(sum[:])
}

// Forgot says whether a report names a volume unknown to a starting kubelet.
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

// doubtsOf says whether the report leaves open if a volume is there, since an unreadable record may be of
// it.
func (w *NodeWord) doubtsOf(v VolumeID) bool {
	if w == nil {
		return false
	}
	if _, doubts := slices.BinarySearchFunc(w.doubts, v, VolumeID.Compare); doubts {
		return true
	}
	return w.digested(v, func(u *Unread) bool { return !u.There })
}

// Answers says whether the node's report is about the present Node and boot: its volumes are there, and
// it can be asked.
func (n *Node) Answers() bool {
	return n != nil && n.Exists && n.Word != nil && n.Word.NodeUID == n.UID && n.BootID != "" && n.Word.BootID == n.BootID
}

// Speaks says whether the node answers and could read everything, except records of known volumes: see
// SpeaksOf.
func (n *Node) Speaks() bool { return n.Answers() && n.Word.Whole }

// SpeaksOf says whether the node answers and could read everything that may be about a volume: if its
// report omits it, it was not there when the node looked.
func (n *Node) SpeaksOf(v VolumeID) bool { return n.Speaks() && !n.Word.doubtsOf(v) }

// SaysHas says whether the node's report names a volume. A report of another boot is about ended mounts;
// one of a Node made again by the same boot still holds.
func (n *Node) SaysHas(v VolumeID) bool {
	return n != nil && n.Word != nil && (n.BootID == "" || n.Word.BootID == n.BootID) && n.Word.has(v)
}

// Looked says whether the node has looked after the question with a number.
func (n *Node) Looked(number int32) bool {
	return n != nil && n.Word != nil && number > 0 && n.Word.Looked >= int64(number)
}

// NextNumber is the number of the next question: higher than all others. The API refuses a number that it
// can't hold.
func (n *Node) NextNumber() int64 {
	if n == nil || n.Word == nil {
		return 1
	}
	return min(max(n.Word.Look, n.Word.Looked), MaxNumber) + 1
}

// MaxNumber is the highest number of a question that the API takes.
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

// resolveUnread finds the possible volumes of a report's unread records: from their PersistentVolumes, from
// attachments made for such a PersistentVolume, and from the report before, since a PersistentVolume may be
// deleted while its record stays. A volume in a pod's own spec is never attached. A record of a name that
// was never known may be of any volume.
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

// attachedUnder are the volumes with attachments made for a PersistentVolume with another volume now: as
// this process saw, or by the attachments' names.
func (l *Ledger) attachedUnder(pv *pvRecord) []VolumeID {
	list := slices.Clip(pv.outlived)
	for _, name := range pv.attachments {
		if at := l.facts.attachments.get(name).at(); at.IsReal() {
			list = append(list, at)
		}
	}
	return list
}

// isOwnVolume says whether a record is of a CSI volume in the spec of the pod that has the folder.
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

// resolveUnreadAgain: a PersistentVolume or a pod was seen that may identify the volumes of unreadable
// records.
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

// touchSpoken touches the volumes of a node's new report: all volumes there if the node begins or ceases to
// speak, or has answered and is no longer silent.
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

// lookedForAll notes a node's findings about all volumes that it was asked about, after a change in whether
// its report is about this Node, or in the set of volumes that it can't speak for.
func (l *Ledger) lookedForAll(now time.Time, t *Touched, n *Node) {
	for _, v := range n.At() {
		l.looked(now, t, v, n)
	}
}

// looked notes a node's finding about a volume that it was asked about. A second look in a row without it
// shows that the volume is not mounted, whatever the kubelet's list says (Snapshot.Unknown).
func (l *Ledger) looked(now time.Time, t *Touched, v VolumeID, n *Node) {
	p := l.facts.volumes.get(v).OnNode(n.Name)
	if p == nil || p.Proof.Look == 0 {
		return
	}
	proof, looked := p.Proof, n.Looked(p.Proof.Look)
	switch {
	case !n.SpeaksOf(v) || n.SaysHas(v) || !looked && !proof.Again: // or the asked moorage-node is gone
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

// unstaged notes that the node no longer reports a volume. A report may be written long after its look. If
// it does not follow a report that named the volume after the last user came, it may be about the mount
// before. And while a living pod uses the volume there, its kubelet mounts it again: the first NodeStage
// has failed.
func (l *Ledger) unstaged(now time.Time, t *Touched, v VolumeID, n NodeName) {
	if p := l.facts.volumes.get(v).OnNode(n); p != nil && p.Proof.Named && !p.Proof.Unstaged && !l.usedByLivingPod(p) {
		l.changeVolumeOnNode(now, t, v, n, func(p *VolumeOnNode) { p.Proof.Unstaged = true })
	}
}

// usedByLivingPod says whether a pod uses the volume there that is neither being deleted nor
// finished.
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

// mayBeAsked notes that the API server permits questions to a node: each volume that waits there for a
// refused question may ask.
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
	l.looked(now, t, e.Volume, l.facts.nodes.get(e.Node)) // its answer may have come before
}
