// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/moorage-dev/moorage/test/sandbox/disk/cloud"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

var errStopping = errors.New("the disk service is stopping")

// The operation goes on when ctx ends.
func (s *Service) operate(ctx context.Context, id uint64, r diskapi.Request) result {
	for {
		d, f := s.begin(id, r)
		switch d.Do {
		case cloud.Refuse:
			return result{outcome: diskapi.Refused, code: d.Code, message: d.Message}
		case cloud.Answer:
			return result{outcome: diskapi.OK, made: d.Effect}
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			return abandoned(ctx.Err())
		}
		if err := s.failure(); err != nil {
			return abandoned(err)
		}
		if d.Do == cloud.Start && f.torn != "" {
			return result{outcome: diskapi.Failed, code: codes.Internal, message: f.torn}
		}
		if d.Do == cloud.Start {
			return result{outcome: diskapi.OK, made: d.Effect}
		}
	}
}

type flight struct {
	done chan struct{} // closed at its end
	// torn is the reason of a failed operation. Read it after done is closed.
	torn string
}

func (s *Service) begin(id uint64, r diskapi.Request) (d cloud.Decision, f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.failing(); err != nil {
		return cloud.Decision{Do: cloud.Refuse, Code: codes.Unavailable, Message: err.Error()}, nil
	}
	d = s.cloud.Decide(id, r)
	switch d.Do {
	case cloud.Join:
		f = s.inFlight[d.Joined]
	case cloud.Start:
		f = &flight{done: make(chan struct{})}
		s.inFlight[id] = f
		lost := s.losable(id)
		for _, note := range d.Begins {
			note.Write = &diskapi.WriteMark{Flushed: s.writes.OnDisk(note.Volume)}
			s.note(note)
		}
		effect := d.Effect
		effect.ID = id
		s.work.Add(1)
		go s.complete(r, effect, s.latencyOf(r, effect), f, lost)
	}
	return d, f
}

// A disk that is a copy also takes a snapshot's time; an early answered snapshot takes its time afterwards.
// The caller holds mu.
func (s *Service) latencyOf(r diskapi.Request, effect diskapi.Entry) time.Duration {
	switch {
	case r.Again, effect.Unready:
		return 0
	case r.Call == diskapi.CreateVolume && r.Source+r.Snapshot != "":
		return s.latency[r.Call] + s.latency[diskapi.CreateSnapshot]
	}
	return s.latency[r.Call]
}

func (s *Service) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failing()
}

// The caller holds mu.
func (s *Service) failing() error {
	if s.life.Err() != nil {
		return errStopping
	}
	return s.appendErr
}

// The channel is closed when an operation of the call has lost its volume. The caller holds mu.
func (s *Service) losable(id uint64) <-chan struct{} {
	if c, ok := s.lost[id]; ok {
		return c
	}
	c := make(chan struct{})
	s.lost[id] = c
	return c
}

// The caller holds mu.
func (s *Service) lose() {
	for id, c := range s.lost {
		if len(s.cloud.Torn(id)) > 0 {
			close(c)
			delete(s.lost, id)
		}
	}
}

// A started operation is applied after its latency, dropped if the service stops before, and torn when it
// has lost its volume.
func (s *Service) complete(r diskapi.Request, effect diskapi.Entry, latency time.Duration, f *flight, lost <-chan struct{}) {
	defer s.work.Done()
	err := s.carry(r.Call, latency, lost)
	var broken error
	if err == nil && s.devices != nil {
		broken = s.devices.Carry(effect)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	torn := s.cloud.Torn(effect.ID)
	switch {
	case err != nil:
	case broken != nil:
		f.torn = broken.Error()
	case len(torn) > 0:
		f.torn = s.tear(torn)
	default:
		s.record(s.copied(s.flush(effect)))
	}
	if err != nil || f.torn != "" || s.appendErr != nil {
		s.cloud.Cancel(r)
	}
	if err == nil && effect.Unready && f.torn == "" {
		defer s.copyOn(effect.ID, effect.Call)
	}
	delete(s.inFlight, effect.ID)
	delete(s.lost, effect.ID)
	close(f.done)
}

// The caller holds mu.
func (s *Service) tear(torn []diskapi.Entry) string {
	for _, note := range torn {
		s.note(note)
	}
	return torn[0].Detail
}

// copyOn makes the copies behind early answered snapshots. The caller holds mu.
func (s *Service) copyOn(id uint64, call diskapi.Call) {
	latency, lost := s.latency[call], s.losable(id)
	s.work.Go(func() {
		if s.pauseUnless(lost, latency) != nil {
			return // the next process begins anew
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.lost, id)
		if !slices.Contains(s.cloud.Unready(), id) {
			return // they were deleted
		}
		if torn := s.cloud.Torn(id); len(torn) > 0 {
			s.tear(torn)
			return
		}
		s.note(diskapi.Entry{ID: id, Call: diskapi.SnapshotReady})
	})
}

// The time of an attach or a detach begins with its turn.
func (s *Service) carry(call diskapi.Call, latency time.Duration, lost <-chan struct{}) error {
	if s.turns != nil && (call == diskapi.ControllerPublish || call == diskapi.ControllerUnpublish) {
		select {
		case s.turns <- struct{}{}:
		case <-s.life.Done():
			return errStopping
		}
		defer func() { <-s.turns }()
	}
	return s.pauseUnless(lost, latency)
}

// The loss is no error.
func (s *Service) pauseUnless(lost <-chan struct{}, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return s.life.Err()
	case <-lost:
		return nil
	case <-s.life.Done():
		return errStopping
	}
}

func (s *Service) pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.life.Done():
		return errStopping
	}
}

func (s *Service) hold(ctx context.Context, faultID string) error {
	for {
		s.mu.Lock()
		set, cleared := s.faultSet(faultID), s.cleared
		s.mu.Unlock()
		if !set {
			return nil
		}
		select {
		case <-cleared:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.life.Done():
			return errStopping
		}
	}
}
