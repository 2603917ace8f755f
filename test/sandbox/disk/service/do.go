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

type result struct {
	outcome diskapi.Outcome
	code    codes.Code
	message string
	made    diskapi.Entry
	hold    string
}

// Do returns when the call is over or ctx ends. The arrival is logged before anything else, the answer
// before it is given.
func (s *Service) Do(ctx context.Context, r diskapi.Request) diskapi.Answer {
	s.mu.Lock()
	fault, _ := s.book.Hit(r.Call, subject(r), r.Node)
	arrival := s.record(diskapi.Entry{
		Phase: diskapi.Arrived, Call: r.Call, Volume: r.Volume, Node: r.Node, FaultID: fault.ID, Args: r.Args,
	})
	err := s.appendErr
	s.mu.Unlock()
	if err != nil {
		return diskapi.Answer{Code: codes.Unavailable.String(), Message: err.Error()}
	}
	return s.answer(arrival, s.carryOut(ctx, arrival.ID, r, fault))
}

// A fault's volume is compared with the handle, or with the name of an object without a handle. For
// CreateSnapshot it is the volume's handle.
func subject(r diskapi.Request) string {
	switch r.Call {
	case diskapi.CreateVolume, diskapi.CreateGroupSnapshot:
		return r.Name
	case diskapi.DeleteSnapshot:
		return r.Snapshot
	case diskapi.DeleteGroupSnapshot, diskapi.GetGroupSnapshot:
		return r.Group
	}
	return r.Volume
}

func (s *Service) carryOut(ctx context.Context, id uint64, r diskapi.Request, f diskapi.Fault) result {
	switch f.Action {
	case diskapi.Fail:
		return faulted(f)
	case diskapi.Ignore:
		return pretend(id, r)
	case diskapi.Delay:
		if err := s.pause(ctx, time.Duration(f.DelayMs)*time.Millisecond); err != nil {
			return abandoned(err)
		}
	case diskapi.Hang:
		if err := s.hold(ctx, f.ID); err != nil {
			return abandoned(err)
		}
	}
	res := s.operate(ctx, id, r)
	if res.outcome != diskapi.OK {
		return res
	}
	switch f.Action {
	case diskapi.FailAfter:
		return faulted(f)
	case diskapi.HangAfter:
		if err := s.hold(ctx, f.ID); err != nil {
			return abandoned(err)
		}
	case diskapi.HangDone:
		res.hold = f.ID
	}
	return res
}

// Hold notes that a node has done its part, and returns when the fault is cleared or ctx ends.
func (s *Service) Hold(ctx context.Context, faultID string, r diskapi.Request) error {
	s.mu.Lock()
	s.note(diskapi.Entry{Call: diskapi.Held, Volume: r.Volume, Node: r.Node, FaultID: faultID, Detail: string(r.Call)})
	s.mu.Unlock()
	return s.hold(ctx, faultID)
}

func faulted(f diskapi.Fault) result {
	// Set faults are validated; an unknown code from an old journal is Unknown.
	code, err := diskapi.ParseCode(f.Code)
	if err != nil {
		code = codes.Unknown
	}
	message := f.Message
	if message == "" {
		message = "injected by " + f.ID
	}
	return result{outcome: diskapi.Failed, code: code, message: message}
}

func pretend(id uint64, r diskapi.Request) result {
	e := diskapi.Entry{Volume: r.Volume, Detail: "nothing was done", Args: r.Args}
	switch r.Call {
	case diskapi.CreateVolume:
		e.Volume, e.Zone = cloud.HandleFor(r.Name, id), cloud.ZoneFor(r.Zones)
	case diskapi.ControllerPublish:
		e.Context = cloud.PublishContext(id, r.Volume)
	case diskapi.CreateSnapshot:
		e.Snapshot = cloud.SnapshotHandle(r.Name, r.Volume, id)
	case diskapi.CreateGroupSnapshot:
		e.Group, e.Parts = cloud.GroupHandle(r.Name, id), nil
		for _, p := range r.Parts {
			e.Parts = append(e.Parts, diskapi.Part{Volume: p.Volume, Handle: cloud.SnapshotHandle(r.Name, p.Volume, id)})
		}
	}
	return result{outcome: diskapi.OK, made: e}
}

func abandoned(err error) result {
	code := codes.Unavailable
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	case errors.Is(err, context.Canceled):
		code = codes.Canceled
	}
	return result{outcome: diskapi.Abandoned, code: code, message: err.Error()}
}

func (s *Service) answer(arrival diskapi.Entry, res result) diskapi.Answer {
	e := diskapi.Entry{
		ID: arrival.ID, Phase: diskapi.Returned, Call: arrival.Call,
		Volume: arrival.Volume, Node: arrival.Node, FaultID: arrival.FaultID,
		Outcome: res.outcome, Code: res.code.String(), Detail: res.message,
		Args: diskapi.Args{Path: arrival.Path, Name: arrival.Name, Again: arrival.Again},
	}
	a := diskapi.Answer{ID: e.ID, Code: e.Code, Message: res.message}
	if res.outcome == diskapi.OK {
		e.Volume, e.Detail = res.made.Volume, res.made.Detail
		e.Slots, e.SizeBytes, e.CIDRs = res.made.Slots, res.made.SizeBytes, res.made.CIDRs
		e.Zone = res.made.Zone
		a.Volume, a.SizeBytes, a.Slots, a.Zone = e.Volume, e.SizeBytes, e.Slots, e.Zone
		a.Hold = res.hold
		if e.Call == diskapi.ControllerPublish {
			e.Context, a.Context = res.made.Context, res.made.Context
		}
		e.Operated = res.made.Operated
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if res.outcome == diskapi.OK {
		a.Group, a.Snapshots = e.Group, s.snapshotsFor(e)
	}
	s.record(e)
	return a
}

// A snapshot that exists only by a fault's answer is made up. The caller holds mu.
func (s *Service) snapshotsFor(e diskapi.Entry) []diskapi.Snapshot {
	var parts []diskapi.Part
	switch e.Call {
	case diskapi.CreateSnapshot:
		parts = []diskapi.Part{{Volume: e.Volume, Handle: e.Snapshot}}
	case diskapi.CreateGroupSnapshot, diskapi.GetGroupSnapshot:
		parts = e.Parts
	}
	var list []diskapi.Snapshot
	for _, p := range parts {
		x, ok := s.cloud.Snapshot(p.Handle)
		if !ok {
			x = diskapi.Snapshot{Handle: p.Handle, Name: e.Name, Volume: p.Volume, SizeBytes: e.SizeBytes, Group: e.Group, Created: s.now(), Ready: true}
		}
		list = append(list, x)
	}
	return list
}
