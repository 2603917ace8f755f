// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"

	"github.com/moorage-dev/moorage/test/sandbox"
)

// Only the script's own goroutine may call a story's methods. They end the story when they fail.
type story struct {
	*sandbox.Env
	// A story lives no longer than the call that tells it.
	ctx context.Context
}

type ending struct{ err error }

func tell(script func(*story)) func(context.Context, *sandbox.Env) error {
	return func(ctx context.Context, e *sandbox.Env) error {
		return ended(func() { script(&story{Env: e, ctx: ctx}) })
	}
}

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

func (s *story) must(err error) {
	if err != nil {
		panic(ending{err})
	}
}

func (s *story) until(what string, check func() error) {
	s.must(s.Eventually(s.ctx, what, check))
}

func (s *story) expect(ok bool, what, format string, args ...any) {
	s.must(s.Expect(ok, what, format, args...))
}

func (s *story) say(format string, args ...any) { s.Log(format, args...) }

func (s *story) moorage() bool { return s.Mode.Moorage() }

func (s *story) show(resources ...string) { s.Show(s.ctx, resources...) }
