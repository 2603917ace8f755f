// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"

	"github.com/moorage-dev/moorage/test/sandbox"
)

// story is a running scenario. Its methods do one thing each and end the story when it fails, so that a
// script is a list of events. They must be called from the script's own goroutine.
type story struct {
	*sandbox.Env
	// ctx is the script's: a story lives no longer than the call that tells it.
	ctx context.Context
}

// ending carries the error that ended a story from where it happened to tell.
type ending struct{ err error }

// tell turns a script into a scenario's Run.
func tell(script func(*story)) func(context.Context, *sandbox.Env) error {
	return func(ctx context.Context, e *sandbox.Env) error {
		return ended(func() { script(&story{Env: e, ctx: ctx}) })
	}
}

// ended tells a part of a story, and returns the error that ended it.
func ended(part func()) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case ending:
			err = p.err
		default:
			panic(p) // a bug of the script: the runner reports it
		}
	}()
	part()
	return nil
}

// must ends the story if there is an error.
func (s *story) must(err error) {
	if err != nil {
		panic(ending{err})
	}
}

// until waits for an expectation to come true.
func (s *story) until(what string, check func() error) {
	s.must(s.Eventually(s.ctx, what, check))
}

// expect ends the story unless an expectation holds now; the format has the actual state.
func (s *story) expect(ok bool, what, format string, args ...any) {
	s.must(s.Expect(ok, what, format, args...))
}

// say tells people how it goes.
func (s *story) say(format string, args ...any) { s.Log(format, args...) }

// moorage says whether Moorage runs.
func (s *story) moorage() bool { return s.Mode.Moorage() }

// show prints present resources, for people who watch.
func (s *story) show(resources ...string) { s.Show(s.ctx, resources...) }
