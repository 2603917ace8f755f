// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/controller/attacher/decide"
	"github.com/moorage-dev/moorage/controller/attacher/objects"
	"github.com/moorage-dev/moorage/test/proptest"
)

const probeEvery = 30 * time.Second

const floor = 10

// A refusal comes at once, any other answer after the time of a write. Only the test moves the clock.
// Serial.
type storm struct {
	*stage
	step   time.Duration
	answer func(node string) codes.Code
	// 0: any number; the driver refuses the others
	takes    int
	underWay int // calls
	busy     int // calls that are carried out
	refuse   bool
	calls    int
	callsAt  map[string]int // by node
}

func newStorm(t *testing.T, step time.Duration, seed uint64, answer func(node string) codes.Code) *storm {
	s := &storm{stage: newStage(t), step: step, answer: answer, callsAt: map[string]int{}}
	s.api = newFakeAPI(func(string) {})
	s.rules.Random = rand.New(rand.NewPCG(seed, seed)).Float64
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	e, err := newEngine(ctx, engineConfig{
		Reader: s.reader, Rules: s.rules, API: s.api, Backend: s, Clock: s.clock,
		Timeout: time.Minute, Workers: defaultWorkers, Leading: func() bool { return true },
		Run: s.run, Count: func(decide.Action, decide.Result) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.engine = e
	e.Start()
	return s
}

// run lets a call have its place in the limit before it returns.
func (s *storm) run(f func()) {
	if s.engine.limit.InUse() == s.underWay {
		s.clock.AfterFunc(s.step, f)
		return
	}
	s.underWay++
	if s.takes > 0 && s.busy == s.takes {
		s.clock.AfterFunc(s.step/refusal, func() { s.ends(f, true) })
		return
	}
	s.busy++
	s.clock.AfterFunc(s.step, func() {
		s.busy--
		s.ends(f, false)
	})
}

const refusal = 50

func (s *storm) ends(f func(), refuse bool) {
	s.underWay--
	s.refuse = refuse
	f()
}

func (s *storm) Publish(_ context.Context, _ objects.Call, nodeID string, _ map[string]string) (map[string]string, error) {
	return nil, s.call(nodeID)
}

func (s *storm) Unpublish(_ context.Context, _ objects.Call, nodeID string, _ map[string]string) error {
	return s.call(nodeID)
}

func (s *storm) call(nodeID string) error {
	s.calls++
	s.callsAt[nodeID]++
	code := s.answer(nodeID)
	if s.refuse {
		code = codes.ResourceExhausted
	}
	return status.Error(code, "too much")
}

func (s *storm) Published(context.Context, string, string) (bool, error) { return false, nil }

func (s *storm) List(context.Context) (map[string][]string, error) { return nil, nil }

func (s *storm) attach(first, last, firstNode, nodes int) {
	for i := range nodes {
		s.do(fmt.Sprintf("create csinode n%d id=n%d", firstNode+i, firstNode+i))
	}
	for i := first; i < last; i++ {
		node := firstNode + i%nodes
		s.do(fmt.Sprintf("create pv pv%d stamped handle=h%d", i, i))
		s.do(fmt.Sprintf("create va va%d pv=pv%d stamped node=n%d id=n%d", i, i, node, node))
	}
	s.deliver()
}

func (s *storm) detach(first, last, nodes int) {
	for i := range nodes {
		s.do(fmt.Sprintf("create csinode n%d id=n%d", i, i))
	}
	for i := first; i < last; i++ {
		s.do(fmt.Sprintf("create pv pv%d stamped handle=h%d", i, i))
		s.do(fmt.Sprintf("create va va%d pv=pv%d stamped node=n%d id=n%d attached", i, i, i%nodes, i%nodes))
	}
	s.deliver()
	for i := first; i < last; i++ {
		s.do(fmt.Sprintf("delete va va%d", i))
	}
	s.deliver()
}

func (s *storm) deliver() {
	for len(s.api.events) > 0 {
		event := s.api.events[0]
		s.api.events = s.api.events[1:]
		event(s.engine)
	}
}

func (s *storm) pass(left int, limit time.Duration) time.Duration {
	began := s.clock.now
	for s.left() > left && s.clock.step(began.Add(limit)) {
		s.deliver()
	}
	return s.clock.now.Sub(began)
}

func (s *storm) left() int {
	n := 0
	for _, va := range s.api.attachments {
		if !va.Status.Attached || va.DeletionTimestamp != nil {
			n++
		}
	}
	return n
}

// A driver that takes calls again soon has all volumes done, with one call each.
func TestEverybodyIsPushedBack(t *testing.T) {
	proptest.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(20, 300).Draw(r, "volumes")
		nodes := rapid.IntRange(2, 10).Draw(r, "nodes")
		away := time.Duration(rapid.IntRange(1, 1800).Draw(r, "seconds away")) * time.Second
		step := time.Duration(rapid.IntRange(1, 2000).Draw(r, "milliseconds of a call")) * time.Millisecond
		code := rapid.SampledFrom([]codes.Code{codes.ResourceExhausted, codes.Unavailable, codes.Aborted, codes.DeadlineExceeded}).Draw(r, "code")
		back := false
		s := newStorm(t, step, rapid.Uint64().Draw(r, "jitter"), func(string) codes.Code {
			if back {
				return codes.OK
			}
			return code
		})
		if rapid.Bool().Draw(r, "detach") {
			s.detach(0, n, nodes)
		} else {
			s.attach(0, n, 0, nodes)
		}
		s.pass(0, away)

		asked := away.Seconds()/probeEvery.Seconds() + float64(n)*(2+math.Log2(1+away.Seconds())+away.Minutes()/5)
		if float64(s.calls) > asked {
			r.Errorf("%d calls for %d volumes in %s without a success, want %.0f at most", s.calls, n, away, asked)
		}
		if size := s.engine.limit.Size(); away > time.Minute && size > floor {
			r.Errorf("after %s without a success it is given %d calls at a time, want %d", away, size, floor)
		}

		back, s.calls = true, 0
		limit := probeEvery + 20*step
		if took := s.pass(0, limit); s.left() > 0 {
			r.Errorf("%d of %d volumes are left %s after the driver takes calls again", s.left(), n, took)
		}
		if s.calls > n {
			r.Errorf("%d calls that succeed for %d volumes", s.calls, n)
		}
	})
}

func TestSomeArePushedBack(t *testing.T) {
	proptest.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(20, 400).Draw(r, "volumes")
		takes := rapid.IntRange(5, 100).Draw(r, "at a time")
		step := time.Duration(rapid.IntRange(100, 2000).Draw(r, "milliseconds of a call")) * time.Millisecond
		s := newStorm(t, step, rapid.Uint64().Draw(r, "jitter"), func(string) codes.Code { return codes.OK })
		s.takes = takes
		s.attach(0, n, 0, 10)
		best := time.Duration((n+takes-1)/takes)*step + step
		if took := s.pass(0, time.Hour); took > 2*best+2*time.Second {
			r.Errorf("%d volumes are attached after %s, by a driver that could in %s", n, took, best)
		}
		if s.calls > 10*n {
			r.Errorf("%d calls for %d volumes", s.calls, n)
		}
	})
}

func TestOneNodeIsFull(t *testing.T) {
	const full, others, step = 30, 250, time.Second
	s := newStorm(t, step, 1, func(node string) codes.Code {
		if node == "n0" {
			return codes.ResourceExhausted
		}
		return codes.OK
	})
	s.attach(0, full, 0, 1)
	s.pass(0, time.Hour)
	if calls, most := s.callsAt["n0"], full*(10+12); calls > most {
		t.Errorf("%d calls in an hour for %d volumes at a full node, want the %d of their backoff at most", calls, full, most)
	}
	calls := s.callsAt["n0"]
	s.attach(full, full+others, 1, 9)
	if took := s.pass(full, time.Minute); took > 4*step {
		t.Errorf("%d volumes at other nodes take %s, want two rounds of calls and a write", others, took)
	}
	if again := s.callsAt["n0"] - calls; again > full {
		t.Errorf("meanwhile %d more calls at the full node, for %d volumes", again, full)
	}
}
