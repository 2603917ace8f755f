// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

type Result struct {
	Config      Config
	Broken      []string
	Faulty, All []Action
}

func (r Result) String() string {
	var b strings.Builder
	for _, rule := range r.Broken {
		fmt.Fprintf(&b, "  %s\n", rule)
	}
	fmt.Fprintf(&b, "%+v\n", r.Config)
	for _, a := range r.Faulty {
		fmt.Fprintf(&b, "    %s\n", a)
	}
	return b.String()
}

// The product reads the Leases of nodes that are not Ready this often: nothing is at rest before
// (internal/watch).
const leaseInterval = 5 * time.Second

const (
	settleActions = 8000
	settleTime    = time.Hour
	// With permanent refusals all processes keep retrying: in this time, each has tried with its longest
	// pause.
	retryActions = 800000
	retryTime    = 20 * time.Minute
)

func Run(config Config) Result { return New(config).run() }

func (s *Sim) run() Result {
	for i := range s.config.Steps {
		rates := s.config.Rates
		if i < s.config.Warm {
			rates = [classes]int{churn: rates[churn]}
		}
		a, any := s.offers().pick(s.rng, rates)
		if !any {
			break
		}
		if s.Do(a); len(s.broken()) > 0 {
			return s.result(len(s.trace))
		}
	}
	return s.finish()
}

func Replay(config Config, actions []Action, listen func(string)) Result {
	s := New(config)
	s.notes = listen
	for _, a := range actions {
		if s.Do(a) {
			s.note("%s  %s", s.Now().Sub(start()), a)
		}
		if len(s.broken()) > 0 {
			return s.result(len(s.trace))
		}
	}
	return s.finish()
}

func (s *Sim) result(faulty int) Result {
	return Result{s.config, s.broken(), s.trace[:faulty:faulty], s.trace}
}

// finish judges the run at rest. If volumes are then unknown, their machines boot, and it is judged again.
func (s *Sim) finish() Result {
	faulty := len(s.trace)
	s.rng = rand.New(rand.NewPCG(s.config.Seed, 0x736574746c65)) // a shortened run settles alike
	s.faulty = false
	s.faults.heal()
	s.moved++
	s.collect()
	if s.settle(); len(s.broken()) == 0 && s.reboot() {
		s.settle()
	}
	return s.result(faulty)
}

func (s *Sim) settle() {
	long, actions := settleTime, settleActions
	if len(s.w.Refusals) > 0 {
		long, actions = retryTime, retryActions
	}
	end, read := s.Now().Add(long), false
	for range actions {
		if a, any := s.offers().pick(s.rng, [classes]int{}); any {
			if !s.Do(a) {
				s.fault("%s was offered, and can't be done", a)
			}
			s.note("%s  %s", s.Now().Sub(start()), a)
		} else if due := s.due(); !due.IsZero() && !due.After(end) {
			s.pass(due.Sub(s.Now()))
		} else if !read {
			read = true
			s.pass(leaseInterval)
		} else if s.faults.deleteLostPods() { // one was bound after the others had gone
			s.moved++
			s.collect()
			s.note("%s  user delete the pods whose PersistentVolume has vanished", s.Now().Sub(start()))
		} else {
			s.judgeEnd() // the remaining retries don't help
			return
		}
		if len(s.broken()) > 0 {
			return
		}
	}
	s.fault("it does not settle: %s", s.restless())
}

// reboot is false without unknown volumes. A boot tells nothing of an earlier machine of the name.
func (s *Sim) reboot() bool {
	c := s.leader()
	for _, k := range s.kubelets {
		unknown := func(v ledger.VolumeID) bool { return s.unknown(c, v, k.node) }
		if k.working() && k.machine.ID == firstMachine(k.node) && slices.ContainsFunc(s.w.Volumes(), unknown) {
			s.rebooted = append(s.rebooted, k.node)
			k.crash()
			k.restart()
		}
	}
	s.moved++
	s.collect()
	return len(s.rebooted) > 0
}

func (s *Sim) restless() string {
	var last []string
	for _, a := range s.trace[max(0, len(s.trace)-12):] {
		last = append(last, a.String())
	}
	return strings.Join(last, "; ")
}

func (s *Sim) fault(format string, args ...any) {
	s.w.Judge.Faults = append(s.w.Judge.Faults, fmt.Sprintf(format, args...))
}
