// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/moorage-dev/moorage/test/sandbox/disk/cloud"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
	"github.com/moorage-dev/moorage/test/sandbox/disk/faults"
	"github.com/moorage-dev/moorage/test/sandbox/disk/journal"
	"github.com/moorage-dev/moorage/test/sandbox/disk/judge"
	"github.com/moorage-dev/moorage/test/sandbox/disk/writes"
)

type Config struct {
	StateDir  string
	Slots     int
	Lenient   bool
	Latencies map[diskapi.Call]time.Duration
	// Parallel limits the attaches and detaches at a time; 0: no limit.
	Parallel int
	// AttachFor, DetachFor and CopyInBackground have the meaning of cloud.Config's fields. A copy takes the
	// latency of CreateSnapshot, and a group of copies takes the latency of CreateVolumeGroupSnapshot.
	AttachFor, DetachFor []diskapi.Operation
	CopyInBackground     bool
	// Devices are real disks; nil: simulated.
	Devices Devices
	// Now is the clock of the log; time.Now if nil.
	Now func() time.Time
}

// Devices are real disks. A call that they can't carry out has failed. Several goroutines call the methods.
type Devices interface {
	Carry(effect diskapi.Entry) error
	// Power switches a node with its attached disks. A node without power has no devices.
	Power(node string, on bool, attached []diskapi.Attachment) error
}

func (c Config) Validate() error {
	if c.StateDir == "" {
		return errors.New("state-dir is empty: name a folder for the journal")
	}
	if c.Slots < 1 {
		return fmt.Errorf("slots is %d: a node must be able to attach at least one volume", c.Slots)
	}
	if c.Parallel < 0 {
		return fmt.Errorf("parallel is %d: use 0 for any number of operations at a time, or a positive one", c.Parallel)
	}
	for _, o := range c.AttachFor {
		if slices.Contains(c.DetachFor, o) {
			return fmt.Errorf("attach-for and detach-for both have %s: a volume can't be attached and attached nowhere", o)
		}
	}
	for call, d := range c.Latencies {
		if d < 0 {
			return fmt.Errorf("latency of %s is %s: it must not be negative", call, d)
		}
	}
	return nil
}

// Service is a running disk service. All methods are safe for parallel use.
type Service struct {
	now     func() time.Time
	life    context.Context // ends with Close
	stop    context.CancelFunc
	work    sync.WaitGroup // operations that the cloud is carrying out
	devices Devices
	// turns has a place for each attach or detach at work; nil is no limit.
	turns chan struct{}

	// mu guards everything below. Invariant: the state of cloud, book, judge, latency and stats is the fold
	// of entries, the journal's content. writes is that fold, too, but for newer numbers.
	mu        sync.Mutex
	journal   *journal.Journal
	entries   []diskapi.Entry
	cloud     *cloud.State
	book      faults.Book
	judge     *judge.Judge
	writes    writes.State
	latency   map[diskapi.Call]time.Duration
	stats     map[diskapi.Call]*diskapi.CallStats
	unclosed  map[uint64]diskapi.Entry // calls that have not returned, by ID
	grown     chan struct{}            // closed and replaced with each entry
	cleared   chan struct{}            // closed and replaced when faults are cleared
	inFlight  map[uint64]*flight       // operations in flight
	lost      map[uint64]chan struct{} // closed when an operation of a call has lost its volume
	appendErr error                    // the journal failed: nothing is taken any more
}

// New replays the journal, and ends the calls that the last process left open.
func New(c Config) (*Service, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	j, entries, err := journal.Open(c.StateDir)
	if err != nil {
		return nil, err
	}
	s := &Service{
		now: c.Now, journal: j, devices: c.Devices,
		cloud: cloud.New(cloud.Config{
			Slots: c.Slots, Lenient: c.Lenient, AttachFor: c.AttachFor, DetachFor: c.DetachFor, Background: c.CopyInBackground,
		}),
		judge:    judge.New(),
		latency:  map[diskapi.Call]time.Duration{},
		stats:    map[diskapi.Call]*diskapi.CallStats{},
		unclosed: map[uint64]diskapi.Entry{},
		grown:    make(chan struct{}), cleared: make(chan struct{}),
		inFlight: map[uint64]*flight{}, lost: map[uint64]chan struct{}{},
	}
	if s.now == nil {
		s.now = time.Now
	}
	for call, d := range c.Latencies {
		s.latency[call] = d
	}
	if c.Parallel > 0 {
		s.turns = make(chan struct{}, c.Parallel)
	}
	s.life, s.stop = context.WithCancel(context.Background())
	s.replay(entries)
	if s.appendErr != nil {
		return nil, errors.Join(s.appendErr, j.Close())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.cloud.Nodes() {
		if err := s.power(n.ID, !n.Fenced); err != nil {
			return nil, errors.Join(err, j.Close())
		}
	}
	for _, id := range s.cloud.Unready() {
		s.copyOn(id, s.entries[id-1].Call)
	}
	return s, nil
}

// The caller holds mu.
func (s *Service) power(node string, on bool) error {
	if s.devices == nil {
		return nil
	}
	var attached []diskapi.Attachment
	for _, d := range s.cloud.Disks() {
		for _, a := range d.Attached {
			if a.Node == node {
				attached = append(attached, a)
			}
		}
	}
	return s.devices.Power(node, on, attached)
}

// Close ends operations without applying them, and closes the journal.
func (s *Service) Close() error {
	s.mu.Lock()
	s.stop() // under mu, so that no operation starts after it
	s.mu.Unlock()
	s.work.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.appendErr == nil {
		s.appendErr = errStopping
	}
	return s.journal.Close()
}
