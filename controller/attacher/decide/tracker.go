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
	// Driver is the CSI driver's name.
	Driver string
	// Publishes: the driver has ControllerPublishVolume. Otherwise "attached" is only a note in the API.
	Publishes bool
	// Looks: the driver can report one volume's place.
	Looks bool
	// Backoff is for failed calls and writes.
	Backoff Backoff
	// Random returns numbers in [0,1), for the backoff.
	Random func() float64
}

// Validate reports every unusable field.
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

type volume struct {
	id      VolumeID
	records []*record // sorted by name, UID
}

// Tracker knows a driver's attachments. Its methods are serial.
type Tracker struct {
	rules    Rules
	records  map[string]*record // by UID
	volumes  map[VolumeID]*volume
	unplaced map[string]*record
	// full are attachments without room at their node, by UID.
	full  map[string]*record
	press pushBack
	// looked counts the records, and volumes by name, looked at so far.
	looked    int
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

// unplacedPrefix marks an unknown volume's VolumeID. No handle contains NUL.
const unplacedPrefix = "\x00"

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

// Knows says whether decisions on an attachment remain.
func (b *Tracker) Knows(uid string) bool { return b.records[uid] != nil }

// Forgotten returns the UIDs forgotten since the last call.
func (b *Tracker) Forgotten() []string {
	list := b.forgotten
	b.forgotten = nil
	return list
}

// Len is the number of attachments.
func (b *Tracker) Len() int { return len(b.records) }

func compareRecords(a, b *record) int {
	if c := strings.Compare(a.Name, b.Name); c != 0 {
		return c
	}
	return strings.Compare(a.UID, b.UID)
}

func (b *Tracker) isFull(r *record) { b.full[r.UID] = r }

func (b *Tracker) notFull(r *record) { delete(b.full, r.UID) }

// room retries the attachment with the longest wait for a node's room, and returns its volume.
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
