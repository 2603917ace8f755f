// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

var ErrNotFound = errors.New("not found")

func (s *Service) Nodes() []diskapi.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cloud.Nodes()
}

func (s *Service) Node(id string) (diskapi.Node, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := s.cloud.Node(id)
	if !ok {
		return n, fmt.Errorf("node %q: %w: a node becomes known by its first NodeGetInfo", id, ErrNotFound)
	}
	return n, nil
}

// ChangeNode sets a node's slots, or declares it dead (fenced) or back. Slots
// reach the cluster with the node's next NodeGetInfo.
func (s *Service) ChangeNode(id string, change diskapi.NodeChange) (diskapi.Node, error) {
	n, err := s.Node(id)
	if err != nil {
		return n, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if change.Slots != nil {
		if *change.Slots < 1 {
			return n, fmt.Errorf("slots is %d: a node must be able to attach at least one volume", *change.Slots)
		}
		s.note(diskapi.Entry{Call: diskapi.SetSlots, Node: id, Args: diskapi.Args{Slots: *change.Slots}})
	}
	if change.Fenced != nil && *change.Fenced != n.Fenced {
		call := diskapi.UnfenceNode
		if *change.Fenced {
			call = diskapi.FenceNode
		}
		s.note(diskapi.Entry{Call: call, Node: id})
		if err := s.power(id, !*change.Fenced); err != nil {
			return n, err
		}
	}
	n, _ = s.cloud.Node(id)
	return n, s.appendErr
}

func (s *Service) Faults() []diskapi.FaultStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.book.List()
}

func (s *Service) SetFault(f diskapi.Fault) (diskapi.Fault, error) {
	if err := f.Validate(); err != nil {
		return f, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f.ID = "fault-" + strconv.Itoa(len(s.entries)+1)
	s.note(diskapi.Entry{Call: diskapi.SetFault, FaultID: f.ID, Args: diskapi.Args{Fault: &f}})
	return f, s.appendErr
}

func (s *Service) ClearFaults(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id != "" && !s.faultSet(id) {
		return fmt.Errorf("fault %q: %w: GET /faults lists those that are set", id, ErrNotFound)
	}
	s.note(diskapi.Entry{Call: diskapi.ClearFault, FaultID: id})
	close(s.cleared)
	s.cleared = make(chan struct{})
	return s.appendErr
}

// The caller holds mu.
func (s *Service) faultSet(id string) bool {
	for _, f := range s.book.List() {
		if f.ID == id {
			return true
		}
	}
	return false
}

func (s *Service) SetLatency(l diskapi.Latency) error {
	if err := l.Call.Validate(); err != nil {
		return err
	}
	if l.LatencyMs < 0 {
		return fmt.Errorf("latencyMs is %d: it must not be negative", l.LatencyMs)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(diskapi.Entry{Call: diskapi.SetLatency, Args: diskapi.Args{LatencyOf: l.Call, LatencyMs: l.LatencyMs}})
	return s.appendErr
}

func (s *Service) SetHealth(volume string, list []diskapi.Health) error {
	if err := diskapi.ValidateHealth(list); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.cloud.Disk(volume); !ok {
		return fmt.Errorf("disk %q: %w: GET /disks lists those that there are", volume, ErrNotFound)
	}
	s.note(diskapi.Entry{Call: diskapi.SetHealth, Volume: volume, Args: diskapi.Args{Health: list}})
	return s.appendErr
}

func (s *Service) Finish() ([]diskapi.Violation, error) {
	s.mu.Lock()
	s.note(diskapi.Entry{Call: diskapi.Finish})
	err := s.appendErr
	s.mu.Unlock()
	return s.Violations(0), err
}
