// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sort"
	"sync"
	"syscall"
	"time"
)

var ErrUnknown = errors.New("no such component")

// Group supervises child processes. Its methods are safe for parallel use.
type Group struct {
	spawner *spawner

	mu       sync.Mutex
	children map[string]*child
	closed   bool
	spent    time.Duration // processor time of processes that are gone

	failOnce sync.Once
	failed   chan struct{}
	failure  error
}

type child struct {
	spec    Spec
	cmd     *exec.Cmd
	gone    chan struct{} // closed once the current process is reaped
	state   State
	started time.Time
	starts  int
	quick   int // quick exits in a row
}

func NewGroup() *Group {
	return &Group{
		spawner:  newSpawner(),
		children: map[string]*child{},
		failed:   make(chan struct{}),
	}
}

// Failed is closed when a child ended unasked. Failure then has its *ExitError.
func (g *Group) Failed() <-chan struct{} { return g.failed }

func (g *Group) Failure() error {
	select {
	case <-g.failed:
		return g.failure
	default:
		return nil
	}
}

func (g *Group) Launch(spec Spec) error {
	if err := spec.Validate(); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.children[spec.Name]; ok {
		return fmt.Errorf("supervise: %s is there already", spec.Name)
	}
	c := &child{spec: spec}
	if err := g.startLocked(c); err != nil {
		return err
	}
	g.children[spec.Name] = c
	return nil
}

func (g *Group) Start(name string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	c, ok := g.children[name]
	if !ok {
		return fmt.Errorf("supervise: start %s: %w", name, ErrUnknown)
	}
	if c.state == Running || c.state == Paused {
		return fmt.Errorf("supervise: start %s: it is %s", name, c.state)
	}
	c.quick = 0
	return g.startLocked(c)
}

func (g *Group) Change(name string, args []string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	c, ok := g.children[name]
	if !ok {
		return fmt.Errorf("supervise: change %s: %w", name, ErrUnknown)
	}
	c.spec.Args = args
	return nil
}

// Kill ends a child and its process group, and waits until it is reaped. It is no error if the child has
// ended.
func (g *Group) Kill(ctx context.Context, name string) error {
	g.mu.Lock()
	c, ok := g.children[name]
	if !ok {
		g.mu.Unlock()
		return fmt.Errorf("supervise: kill %s: %w", name, ErrUnknown)
	}
	gone := g.killLocked(c)
	g.mu.Unlock()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("supervise: kill %s: %w", name, context.Cause(ctx))
	}
}

// Terminate sends SIGTERM to the child alone, and kills its process group after grace.
func (g *Group) Terminate(ctx context.Context, name string, grace time.Duration) error {
	g.mu.Lock()
	c, ok := g.children[name]
	if !ok {
		g.mu.Unlock()
		return fmt.Errorf("supervise: terminate %s: %w", name, ErrUnknown)
	}
	gone, pid := c.gone, c.cmd.Process.Pid
	if c.state == Running {
		// ESRCH means it ended a moment ago; its reaper closes the channel.
		_ = syscall.Kill(pid, syscall.SIGTERM)
	}
	c.state = Killed
	g.mu.Unlock()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
	case <-timer.C:
	}
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	<-gone
	return nil
}

func (g *Group) Pause(name string) error {
	return g.signal(name, syscall.SIGSTOP, Running, Paused)
}

func (g *Group) Resume(name string) error {
	return g.signal(name, syscall.SIGCONT, Paused, Running)
}

func (g *Group) signal(name string, sig syscall.Signal, from, to State) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	c, ok := g.children[name]
	if !ok {
		return fmt.Errorf("supervise: %s: %w", name, ErrUnknown)
	}
	if c.state != from {
		return fmt.Errorf("supervise: %s is %s, not %s", name, c.state, from)
	}
	if err := syscall.Kill(-c.cmd.Process.Pid, sig); err != nil {
		return fmt.Errorf("supervise: send %v to %s: %w", sig, name, err)
	}
	c.state = to
	return nil
}

func (g *Group) Status() []Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make([]Status, 0, len(g.children))
	for name, c := range g.children {
		s := Status{Name: name, State: c.state, Started: c.started, Starts: c.starts, Log: c.spec.LogPath}
		if c.state == Running || c.state == Paused {
			s.PID = c.cmd.Process.Pid
		}
		out = append(out, s)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// The group can't be used after Close.
func (g *Group) Close() {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return
	}
	g.closed = true
	var waits []<-chan struct{}
	for _, c := range g.children {
		waits = append(waits, g.killLocked(c))
	}
	g.mu.Unlock()
	for _, gone := range waits {
		<-gone
	}
	g.spawner.stop()
}

func (g *Group) killLocked(c *child) <-chan struct{} {
	if c.state == Running || c.state == Paused {
		_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
	}
	c.state = Killed
	return c.gone
}

func (g *Group) startLocked(c *child) error {
	if g.closed {
		return fmt.Errorf("supervise: start %s: the sandbox is stopping", c.spec.Name)
	}
	log, err := os.OpenFile(c.spec.LogPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("supervise: log of %s: %w", c.spec.Name, err)
	}
	defer log.Close() // the child has its own descriptor
	cmd := exec.Command(c.spec.Path, c.spec.Args...)
	cmd.Args[0] = c.spec.Name // client-go sends this name to the API server
	cmd.Dir = c.spec.Dir
	cmd.Env = append(os.Environ(), c.spec.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: c.spec.Cloneflags}
	if err := g.spawner.start(cmd); err != nil {
		return fmt.Errorf("supervise: start %s: %w", c.spec.Name, err)
	}
	c.cmd, c.gone, c.state, c.started = cmd, make(chan struct{}), Running, time.Now()
	c.starts++
	go g.reap(c, cmd, c.gone, c.started)
	return nil
}

func (g *Group) reap(c *child, cmd *exec.Cmd, gone chan struct{}, started time.Time) {
	err := cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	defer close(gone)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.spent += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if c.state == Killed || g.closed {
		return
	}
	c.state = Exited
	if time.Since(started) < QuickExit {
		c.quick++
	} else {
		c.quick = 0
	}
	if c.spec.Restart && c.quick <= MaxQuickExits {
		time.AfterFunc(restartDelay, func() { g.restart(c, cmd) })
		return
	}
	reason := "exit status 0"
	if err != nil {
		reason = err.Error()
	}
	g.failOnce.Do(func() {
		g.failure = &ExitError{Name: c.spec.Name, Reason: reason, Log: c.spec.LogPath}
		close(g.failed)
	})
}

func (g *Group) restart(c *child, ended *exec.Cmd) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || c.state != Exited || c.cmd != ended {
		return
	}
	if err := g.startLocked(c); err != nil {
		g.failOnce.Do(func() {
			g.failure = err
			close(g.failed)
		})
	}
}
