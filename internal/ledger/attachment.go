// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// attachmentRecord is a compact VolumeAttachment: large clusters have hundreds of thousands. Derived fields
// are not stored, strings share other records' bytes, and unusual values are in odd.
type attachmentRecord struct {
	handle      string // of its volume
	to          *machine
	pv          string // spec.source.persistentVolumeName
	uid         [16]byte
	version     uint64
	gen         uint64
	odd         *oddAttachment
	transitions int64
	pod         string // Note.Pod
	attached    bool
	deleting    bool
	stamped     bool
	ours        bool
	own         bool // see Attachment.Own
	inline      bool // by inlineVolumeSpec
	wanted      bool
	confirmed   bool
	cooperative bool
	byName      bool // its PersistentVolume is unseen
	proved      bool // its VolumeOnNode has a proof; a change voids it
}

// machine is shared by attachments with the same node and driver.
type machine struct {
	node   NodeName
	driver string // the volumes' driver
	nodeID string // annotation csi.alpha.kubernetes.io/node-id
	note   Note   // without its pod
}

// byPV: its PersistentVolume named the volume.
func (r *attachmentRecord) byPV() bool { return !r.inline && !r.byName }

func (r *attachmentRecord) at() VolumeID { return VolumeID{r.to.driver, r.handle} }

// oddAttachment has rare fields.
type oddAttachment struct {
	name         string // not own
	uid, version string // unusual form
	driver       string // not the volume's
	attachError  CallError
	detachError  CallError
	deletedAt    int64
	keptBy       string
	// seen is when this process saw the deletion, since the epoch. Each deleted attachment has it.
	seen time.Duration
}

// noteDeletion keeps the time when this process first saw the deletion.
func (r *attachmentRecord) noteDeletion(before *attachmentRecord, seen time.Duration) {
	if !r.deleting {
		return
	}
	odd := oddAttachment{}
	if r.odd != nil {
		odd = *r.odd
	}
	odd.seen = seen
	if before != nil && before.deleting && before.uidText() == r.uidText() {
		odd.seen = before.odd.seen
	}
	r.odd = &odd
}

// pack shares the strings of handle, to and pv; own says whether they lead to its name.
func (a *Attachment) pack(handle string, to *machine, pv string, own bool) attachmentRecord {
	r := attachmentRecord{
		handle: handle, to: to, pv: pv, own: own,
		transitions: a.Transitions, pod: a.Note.Pod, attached: a.Attached, deleting: a.Deleting, stamped: a.Stamped, ours: a.Ours, wanted: a.Wanted, confirmed: a.Confirmed, cooperative: a.Cooperative, inline: !a.Inline.IsZero(),
	}
	odd := oddAttachment{attachError: a.AttachError, detachError: a.DetachError, deletedAt: a.DeletedAt, keptBy: a.KeptBy}
	var ok bool
	if r.uid, ok = packUID(a.UID); !ok {
		odd.uid = a.UID
	}
	if r.version, ok = packVersion(a.Version); !ok {
		odd.version = a.Version
	}
	if !r.own {
		odd.name = a.Name
	}
	if a.Driver != to.driver {
		odd.driver = a.Driver
	}
	if odd != (oddAttachment{}) {
		kept := odd // odd stays on the stack
		r.odd = &kept
	}
	return r
}

func (r *attachmentRecord) note() Note {
	n := r.to.note
	n.Pod = r.pod
	return n
}

// unpack returns nil for nil.
func (r *attachmentRecord) unpack() *Attachment {
	if r == nil {
		return nil
	}
	a := &Attachment{
		Name: r.name(), UID: r.uidText(), Version: r.versionText(), Driver: r.driver(), Node: r.to.node,
		PersistentVolume: r.pv, Attached: r.attached, Deleting: r.deleting, Stamped: r.stamped, Ours: r.ours, Wanted: r.wanted, Confirmed: r.confirmed, Cooperative: r.cooperative,
		Transitions: r.transitions, Note: r.note(), NodeID: r.to.nodeID, own: r.own,
	}
	if r.inline {
		a.Inline = r.at()
	}
	if r.odd != nil {
		a.AttachError, a.DetachError, a.DeletedAt, a.KeptBy = r.odd.attachError, r.odd.detachError, r.odd.deletedAt, r.odd.keptBy
	}
	return a
}

func (r *attachmentRecord) name() string {
	if r.own {
		return AttachmentName(r.at(), r.to.node)
	}
	return r.odd.name
}

// named compares the name without building it.
func (r *attachmentRecord) named(name string) bool {
	if !r.own {
		return r.odd.name == name
	}
	return leadsTo(name, r.at(), r.to.node)
}

// leadsTo says whether a name is AttachmentName(v, n), for a volume that a driver knows.
func leadsTo(name string, v VolumeID, n NodeName) bool {
	digest, ok := strings.CutPrefix(name, attachmentPrefix)
	if !ok || len(digest) != 2*sha256.Size || !v.IsReal() {
		return false
	}
	var text [2 * sha256.Size]byte
	sum := attachmentDigest(v, n)
	hex.Encode(text[:], sum[:])
	return digest == string(text[:])
}

// NamesAnother says whether a name is AttachmentName's for another volume or node.
func NamesAnother(name string, v VolumeID, n NodeName) bool {
	return usualName(name) && !leadsTo(name, v, n)
}

// usualName says whether an attachment's name has the form of AttachmentName.
func usualName(name string) bool {
	digest, ok := strings.CutPrefix(name, attachmentPrefix)
	if !ok || len(digest) != 2*sha256.Size {
		return false
	}
	for i := range len(digest) {
		if hexDigit(digest[i]) > 15 {
			return false
		}
	}
	return true
}

func (r *attachmentRecord) driver() string {
	if r.odd != nil && r.odd.driver != "" {
		return r.odd.driver
	}
	return r.to.driver
}

func (r *attachmentRecord) uidText() string {
	if r.odd != nil && r.odd.uid != "" {
		return r.odd.uid
	}
	return unpackUID(r.uid)
}

func (r *attachmentRecord) versionText() string {
	switch {
	case r.odd != nil && r.odd.version != "":
		return r.odd.version
	case r.version == 0:
		return ""
	}
	return strconv.FormatUint(r.version, 10)
}

// is says whether the record is of the object with a UID.
func (r *attachmentRecord) is(uid string) bool {
	packed, ok := packUID(uid)
	if !ok {
		return r.odd != nil && r.odd.uid == uid
	}
	return packed == r.uid && (r.odd == nil || r.odd.uid == "")
}

func (r *attachmentRecord) olderThan(version string) bool {
	if v, ok := packVersion(version); ok && v != 0 && r.version != 0 {
		return v > r.version
	}
	return Newer(version, r.versionText())
}

func compareAttachments(a, b *attachmentRecord) int {
	return cmp.Or(count(b.own)-count(a.own), cmp.Compare(a.name(), b.name()))
}

func (r *attachmentRecord) hash() uint64 {
	if r.own {
		sum := attachmentDigest(r.at(), r.to.node)
		return binary.BigEndian.Uint64(sum[:8])
	}
	return hashName(r.odd.name)
}

// hashName relies on usual names being digests.
func hashName(name string) uint64 {
	digest, ok := strings.CutPrefix(name, attachmentPrefix)
	if !ok || len(digest) != 2*sha256.Size {
		return hashStrings(name, "")
	}
	h := uint64(0)
	for i := range 16 {
		d := hexDigit(digest[i])
		if d > 15 {
			return hashStrings(name, "")
		}
		h = h<<4 | uint64(d)
	}
	return h
}
