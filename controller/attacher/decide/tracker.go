// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"errors"
	"slices"
	"strings"
	"time"
)

// Rules are the rules of a Tracker.
type Rules struct {
	// Driver is the name of the CSI driver.
	Driver string
	// Publishes: the driver has ControllerPublishVolume. Without it, being
	// attached is only a note in the API.
	Publishes bool
	// Looks: the driver can report where one volume is published.
	Looks bool
	// Backoff is for failed calls and writes.
	Backoff Backoff
	// Random returns numbers in [0,1), for the backoff.
	Random func() float64
}

// Validate reports every field that prevents decisions.
func (r Rules) Validate() error {
	var errs []error
	if r.Driver == "" {
		errs = append(errs, errors.New("the driver's name is empty"))
	}
	if r.Backoff.First <= 0 || r.Backoff.Max < r.Backoff.First {
		errs = append(errs, errors.New("the first retry must come after more than 0 s, and no later than the largest interval"))
	}
	if r.Random == nil {
		errs = append(errs, errors.New("there is no source of random numbers"))
	}
	return errors.Join(errs...)
}

// volume has the facts about a volume over all its attachments.
type volume struct {
	id      VolumeID
	records []*record // sorted by name, UID
}

// Tracker is what the process knows of a driver's attachments. Its methods are
// serial.
type Tracker struct {
	rules   Rules
	records map[string]*record // by UID
	volumes map[VolumeID]*volume
	// unplaced are the attachments of unknown volumes.
	unplaced map[string]*record
	// full are attachments that their node had no room for, by UID.
	full map[string]*record
	// press has the attachments that the driver pushes back.
	press pushBack
	// looked is how many records, and volumes by their names, were looked at so far.
	looked int
	// forgotten are the attachments dropped since the last call, by UID.
	forgotten []string
}

// NewTracker returns an empty Tracker.
func NewTracker(rules Rules) (*Tracker, error) {
	if err := rules.Validate(); err != nil {
		return nil, err
	}
	return &Tracker{
		rules: rules, records: map[string]*record{}, volumes: map[VolumeID]*volume{},
		unplaced: map[string]*record{}, full: map[string]*record{},
	}, nil
}

// unplacedPrefix starts the VolumeID of an attachment of an unknown volume. NUL is in no handle.
const unplacedPrefix = "\x00"

// key is the VolumeID of the decisions on an attachment.
func key(a *Attachment) VolumeID {
	if a.Volume == "" {
		return VolumeID(unplacedPrefix + a.UID)
	}
	return a.Volume
}

func (b *Tracker) link(r *record) {
	id := key(&r.Attachment)
	v := b.volumes[id]
	if v == nil {
		v = &volume{id: id}
		b.volumes[id] = v
	}
	i, _ := slices.BinarySearchFunc(v.records, r, compareRecords)
	v.records = slices.Insert(v.records, i, r)
	if r.Volume == "" {
		b.unplaced[r.UID] = r
	}
}

func (b *Tracker) unlink(r *record) {
	v := b.volumes[key(&r.Attachment)]
	if v == nil {
		return
	}
	v.records = slices.DeleteFunc(v.records, func(other *record) bool { return other == r })
	delete(b.unplaced, r.UID)
	if len(v.records) == 0 {
		delete(b.volumes, v.id)
	}
}

func (b *Tracker) drop(r *record) {
	b.unlink(r)
	delete(b.records, r.UID)
	b.notFull(r)
	b.press.leave(r)
	b.forgotten = append(b.forgotten, r.UID)
}

// Knows says whether the Tracker still has decisions to make for an attachment.
func (b *Tracker) Knows(uid string) bool { return b.records[uid] != nil }

// Forgotten are the UIDs of attachments that the Tracker has forgotten since the last call; they may
// be long gone.
func (b *Tracker) Forgotten() []string {
	list := b.forgotten
	b.forgotten = nil
	return list
}

// Len is the number of attachments in the Tracker.
func (b *Tracker) Len() int { return len(b.records) }

func compareRecords(a, b *record) int {
	if c := strings.Compare(a.Name, b.Name); c != 0 {
		return c
	}
	return strings.Compare(a.UID, b.UID)
}

// isFull notes that a node had no room for an attachment.
func (b *Tracker) isFull(r *record) { b.full[r.UID] = r }

func (b *Tracker) notFull(r *record) { delete(b.full, r.UID) }

// room lets the attachment that has waited longest for room at a node try
// again at once, and returns its volume.
func (b *Tracker) room(node string) (VolumeID, bool) {
	var first *record
	for _, r := range b.full {
		if r.Node == node && (first == nil || longerWaiting(r, first) < 0) {
			first = r
		}
	}
	if first == nil {
		return "", false
	}
	b.notFull(first)
	first.until = time.Time{}
	return key(&first.Attachment), true
}
