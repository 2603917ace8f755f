// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/controller/attacher/decide"
	"github.com/moorage-dev/moorage/controller/attacher/objects"
	"github.com/moorage-dev/moorage/internal/fair"
)

type engineConfig struct {
	Reader  objects.Reader
	Rules   decide.Rules
	API     api
	Backend backend
	Clock   clock
	Timeout time.Duration
	Workers int
	// Leading: this process holds the lease. Without it, calls and writes wait.
	Leading func() bool
	// Run runs a step outside of the caller's goroutine.
	Run   func(func())
	Count func(decide.Action, decide.Result)
}

func (c engineConfig) Validate() error {
	var errs []error
	if c.API == nil || c.Backend == nil || c.Clock == nil || c.Leading == nil || c.Run == nil || c.Count == nil {
		errs = append(errs, errors.New("API, Backend, Clock, Leading, Run and Count must all be given"))
	}
	if c.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("the timeout of a call must be more than 0 s, and is %s", c.Timeout))
	}
	return errors.Join(errs...)
}

// engine connects seen objects, decisions and steps. Safe for parallel use.
type engine struct {
	config engineConfig
	ctx    context.Context // of the steps

	mu      sync.Mutex
	tracker *decide.Tracker
	store   *store
	limit   *decide.Limit
	// started: all present objects were seen; no decision before that. paused: the driver is away. While
	// paused or stopping, only known facts are written.
	started, paused, stopping bool

	calls   map[string]objects.Call      // by UID, as long as the Tracker knows it
	secrets map[string]map[string]string // by UID, from reading to calling
	failed  map[string]codes.Code        // the code of an attachment's last failed call

	waiting     fair.Row[decide.VolumeID]
	timers      map[decide.VolumeID]func() bool
	volumes     map[string]*volumeWork // work on PersistentVolumes
	running     int
	idle        *sync.Cond
	unaccounted int
	// strays are nodes by PersistentVolume, from the driver's last list.
	strays map[string][]string
}

// newEngine's steps end with ctx.
func newEngine(ctx context.Context, c engineConfig) (*engine, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	tracker, err := decide.NewTracker(c.Rules)
	if err != nil {
		return nil, err
	}
	limit, err := decide.NewLimit(c.Workers, c.Timeout)
	if err != nil {
		return nil, err
	}
	e := &engine{
		config: c, ctx: ctx, tracker: tracker, store: newStore(), limit: limit,
		calls: map[string]objects.Call{}, secrets: map[string]map[string]string{}, failed: map[string]codes.Code{},
		timers: map[decide.VolumeID]func() bool{}, volumes: map[string]*volumeWork{},
	}
	e.idle = sync.NewCond(&e.mu)
	return e, nil
}

// Start begins to decide. Every API object must have been seen.
func (e *engine) Start() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.started = true
	e.lookAtAll()
}

// Pause holds back new calls and their preparations until Resume.
func (e *engine) Pause() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.paused = true
}

func (e *engine) Resume() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.paused = false
	e.lookAtAll()
}

// Stop begins no more calls, and returns when everything is over and written.
func (e *engine) Stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopping = true
	for _, stop := range e.timers {
		stop()
	}
	for e.running > 0 {
		e.idle.Wait()
	}
}

func (e *engine) lookAtAll() {
	touched := map[decide.VolumeID]struct{}{}
	for _, va := range e.store.attachments {
		if a, ok := e.read(va); ok {
			for _, id := range e.tracker.See(a, e.now()) {
				touched[id] = struct{}{}
			}
		}
	}
	for id := range touched {
		e.lookAt(id)
	}
	for name := range e.store.volumes {
		e.lookAtVolume(name)
	}
}

func (e *engine) now() time.Time { return e.config.Clock.Now() }

func (e *engine) allowed(a decide.Action) bool { return !e.paused && !e.stopping || a.Records() }

func (e *engine) look(ids ...decide.VolumeID) {
	for _, id := range ids {
		e.lookAt(id)
	}
}

const leaseRecheck = time.Second

// lookAt decides on a volume and begins its steps. Its calls wait behind waiting ones.
func (e *engine) lookAt(id decide.VolumeID) { e.decideOn(id, false) }

// decideOn is lookAt, but in its turn the volume's first call does not wait.
func (e *engine) decideOn(id decide.VolumeID, turn bool) {
	if !e.started {
		return
	}
	if !e.config.Leading() {
		e.wake(id, e.now().Add(leaseRecheck))
		return
	}
	steps, wake := e.tracker.Next(id, e.now())
	e.wake(id, wake)
	for _, step := range steps {
		if !e.allowed(step.Do) {
			continue
		}
		at := decide.Turn{Began: e.now()}
		if step.Do.Call() {
			free := turn || e.waiting.Len() == 0
			if free {
				at, free = e.limit.Take(at.Began)
			}
			if !free {
				e.waiting.Push(e.namespace(step.Name), id)
				continue
			}
			turn = false
		}
		e.begin(step, at)
	}
}

// namespace is the claim's namespace; empty if unknown.
func (e *engine) namespace(name string) string {
	va := e.store.attachments[name]
	if va == nil || va.Spec.Source.PersistentVolumeName == nil {
		return ""
	}
	pv := e.store.volumes[*va.Spec.Source.PersistentVolumeName]
	if pv == nil || pv.Spec.ClaimRef == nil {
		return ""
	}
	return pv.Spec.ClaimRef.Namespace
}

// wake looks at a volume again at a time; zero: never.
func (e *engine) wake(id decide.VolumeID, at time.Time) {
	if stop := e.timers[id]; stop != nil {
		stop()
		delete(e.timers, id)
	}
	if at.IsZero() {
		return
	}
	e.timers[id] = e.config.Clock.AfterFunc(at.Sub(e.now()), func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.timers, id)
		e.lookAt(id)
	})
}

func (e *engine) begin(step decide.Step, turn decide.Turn) {
	e.tracker.Start(step, turn.Began)
	e.running++
	work := e.prepare(step)
	klog.FromContext(e.ctx).V(4).Info("Begin", "step", step.Do, "VolumeAttachment", step.Name, "node", step.NodeID)
	e.config.Run(func() {
		ctx, cancel := context.WithTimeout(e.ctx, e.config.Timeout)
		defer cancel()
		outcome := work(ctx)
		e.mu.Lock()
		defer e.mu.Unlock()
		e.end(step, turn, outcome)
	})
}

func (e *engine) end(step decide.Step, turn decide.Turn, o outcome) {
	now := e.now()
	e.report(step, o, now.Sub(turn.Began))
	touched := e.absorb(step, o)
	if step.Do == decide.ReadSecret && o.result.Failed.IsZero() {
		e.secrets[step.UID] = o.secret
	}
	touched = append(touched, e.tracker.Done(step, o.result, now)...)
	if step.Do.Call() {
		e.answered(step.UID, o.result.Failed.Code, turn, now)
	}
	e.tidy(step.UID)
	if e.running--; e.running == 0 {
		e.idle.Broadcast()
	}
	e.look(touched...)
	for e.limit.InUse() < e.limit.Size() {
		id, ok := e.waiting.Pop()
		if !ok {
			break
		}
		e.decideOn(id, true)
	}
}

// answered takes a call's end. Repeated failures concern the volume, unless the driver pushes all back.
func (e *engine) answered(uid string, code codes.Code, turn decide.Turn, now time.Time) {
	own := code != codes.OK && e.failed[uid] == code && !e.tracker.Crowded()
	e.limit.Free(turn, code, own, now)
	if code == codes.OK {
		delete(e.failed, uid)
	} else {
		e.failed[uid] = code
	}
}

func (e *engine) tidy(some ...string) {
	for _, uid := range append(some, e.tracker.Forgotten()...) {
		if !e.tracker.Knows(uid) {
			delete(e.calls, uid)
			delete(e.secrets, uid)
			delete(e.failed, uid)
		}
	}
}

func (e *engine) report(step decide.Step, o outcome, took time.Duration) {
	e.config.Count(step.Do, o.result)
	logger := klog.FromContext(e.ctx).WithValues("step", step.Do, "VolumeAttachment", step.Name, "took", took)
	switch {
	case !o.result.Failed.IsZero():
		logger.V(2).Info("Failed", "node", step.NodeID, "code", o.result.Failed.Code, "err", o.result.Failed.Message)
	case step.Do.Call():
		logger.V(2).Info("Done", "volume", step.Volume, "node", step.NodeID)
	default:
		logger.V(4).Info("Done")
	}
}
