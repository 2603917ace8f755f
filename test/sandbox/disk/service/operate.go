// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/moorage-dev/moorage/test/sandbox/disk/cloud"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// errStopping ends what waits inside a service that is being closed.
var errStopping = errors.New("the disk service is stopping")

// operate asks the cloud what to do and waits until it is done. The operation
// itself goes on when ctx ends.
func (s *Service) operate(ctx context.Context, id uint64, r diskapi.Request) result {
	for {
		d, done := s.begin(id, r)
		switch d.Do {
		case cloud.Refuse:
			return result{outcome: diskapi.Refused, code: d.Code, message: d.Message}
		case cloud.Answer:
			return result{outcome: diskapi.OK, made: d.Effect}
		}
		select {
		case <-done:
		case <-ctx.Done():
			return abandoned(ctx.Err())
		}
		if err := s.failure(); err != nil {
			return abandoned(err)
		}
		if d.Do == cloud.Start {
			return result{outcome: diskapi.OK, made: d.Effect}
		}
	}
}

// begin decides on a call and starts it if that is what there is to do. For
// Start and Join, done is closed when the operation is over.
func (s *Service) begin(id uint64, r diskapi.Request) (d cloud.Decision, done <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.failing(); err != nil {
		return cloud.Decision{Do: cloud.Refuse, Code: codes.Unavailable, Message: err.Error()}, nil
	}
	d = s.cloud.Decide(id, r)
	switch d.Do {
	case cloud.Join:
		done = s.inFlight[d.Joined]
	case cloud.Start:
		end := make(chan struct{})
		s.inFlight[id], done = end, end
		effect, latency := d.Effect, s.latency[r.Call]
		effect.ID = id
		if r.Again {
			latency = 0
		}
		s.work.Add(1)
		go s.complete(r, effect, latency, end)
	}
	return d, done
}

// failure returns why nothing can be carried out any more, or nil.
func (s *Service) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failing()
}

// failing is failure for callers that hold mu.
func (s *Service) failing() error {
	if s.life.Err() != nil {
		return errStopping
	}
	return s.appendErr
}

// complete carries a started operation to its end: applied when its latency is
// over, dropped if the service stops before.
func (s *Service) complete(r diskapi.Request, effect diskapi.Entry, latency time.Duration, end chan<- struct{}) {
	defer s.work.Done()
	err := s.carry(r.Call, latency)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.record(s.flush(effect))
	}
	if err != nil || s.appendErr != nil {
		s.cloud.Cancel(r)
	}
	delete(s.inFlight, effect.ID)
	close(end)
}

// carry takes an operation's time; that of an attach or a detach begins with its
// turn.
func (s *Service) carry(call diskapi.Call, latency time.Duration) error {
	if s.turns != nil && (call == diskapi.ControllerPublish || call == diskapi.ControllerUnpublish) {
		select {
		case s.turns <- struct{}{}:
		case <-s.life.Done():
			return errStopping
		}
		defer func() { <-s.turns }()
	}
	return s.pause(s.life, latency)
}

// pause waits for d, or until ctx or the service ends.
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

// hold waits until the fault is cleared, or until ctx or the service ends.
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
