// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/moorage-dev/moorage/test/sandbox"
)

type demoOptions struct {
	cluster shapeFlags
	seed    uint64
}

func newDemoCommand(s *Session) *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch Moorage at work: a story in scenes, some of them beside upstream",
		Long:  "Watch Moorage at work: a story in scenes, some of them beside upstream.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.demo(cmd.Context(), &o, cmd.OutOrStdout())
		},
	}
	fs := cmd.Flags()
	fs.Uint64Var(&o.seed, "seed", 0, "seed of the scenes' random choices (default: a random one)")
	o.cluster.addCommon(fs)
	return cmd
}

func (s *Session) demo(ctx context.Context, o *demoOptions, out io.Writer) error {
	options, err := s.options(&o.cluster)
	if err != nil {
		return err
	}
	if o.seed == 0 {
		o.seed = rand.Uint64N(1<<32) + 1
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	began := time.Now()
	upstream := playBeside(ctx, s.Demo, options, o.seed)
	p := &player{out: out, paint: isTerminal(out)}
	p.opening(len(s.Demo))
	runner := p.runner(options, o.seed)
	p.prepare(ctx, runner, s.Demo[0].Scenario, sandbox.Standalone)
	var rows []row
	for i, scene := range s.Demo {
		if ctx.Err() != nil {
			break
		}
		p.heading(i+1, scene)
		r := row{scene: scene}
		if scene.Fails != "" {
			r.upstream = p.replay(scene, <-upstream[i])
		}
		r.moorage = p.play(ctx, runner, scene)
		rows = append(rows, r)
	}
	stop()
	closed := runner.Close()
	for _, played := range upstream {
		<-played // its cluster has stopped
	}
	if closed != nil {
		return closed
	}
	if p.closing(rows, time.Since(began)) > 0 {
		return ErrReported
	}
	return nil
}

type played struct {
	text   bytes.Buffer
	result sandbox.Result
}

// A scene's channel delivers it once it is over; all are closed when the cluster is gone.
func playBeside(ctx context.Context, scenes []sandbox.Scene, options sandbox.Options, seed uint64) (done []chan *played) {
	for range scenes {
		done = append(done, make(chan *played, 1))
	}
	options.Progress = func(string) {}
	if options.Name != "" {
		options.Name += "-upstream"
	}
	go func() {
		p := &player{}
		runner := p.runner(options, seed)
		for i, scene := range scenes {
			if scene.Fails == "" {
				continue
			}
			part := &played{}
			p.out = &part.text
			p.prepare(ctx, runner, scene.Scenario, sandbox.Upstream)
			part.result = runner.Run(ctx, scene.Scenario, sandbox.Upstream)
			done[i] <- part
		}
		_ = runner.Close() // the next sandbox removes the rest
		for _, c := range done {
			close(c)
		}
	}()
	return done
}

// NO_COLOR and CLICOLOR_FORCE are obeyed (no-color.org, bixense.com/clicolors).
func isTerminal(w io.Writer) bool {
	if force := os.Getenv("CLICOLOR_FORCE"); force != "" && force != "0" {
		return true
	}
	return os.Getenv("NO_COLOR") == "" && isScreen(w)
}

func isScreen(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func (p *player) runner(options sandbox.Options, seed uint64) *sandbox.Runner {
	return &sandbox.Runner{
		Options: options, Seed: seed,
		Log: p.say,
		Show: func(ctx context.Context, e *sandbox.Env, resources []string) {
			for _, resource := range resources {
				if err := printResource(ctx, p.indented(), e, resource); err != nil {
					p.say("%s can't be shown: %v", resource, err)
				}
			}
		},
	}
}

// An error at the start is reported by the scene itself.
func (p *player) prepare(ctx context.Context, runner *sandbox.Runner, s sandbox.Scenario, mode sandbox.Mode) {
	_ = runner.Prepare(ctx, s, mode)
	p.began = time.Now()
}

func (p *player) play(ctx context.Context, runner *sandbox.Runner, scene sandbox.Scene) *sandbox.Result {
	p.voice("Moorage")
	p.prepare(ctx, runner, scene.Scenario, sandbox.Standalone)
	result := runner.Run(ctx, scene.Scenario, sandbox.Standalone)
	p.times(result, scene.Stages)
	p.verdict(scene, result)
	return &result
}

func (p *player) replay(scene sandbox.Scene, show *played) *sandbox.Result {
	p.voice("Upstream, the same manifests")
	if show == nil {
		fmt.Fprintln(p.out, "    it was not played")
		return &sandbox.Result{}
	}
	_, _ = show.text.WriteTo(p.out) // a terminal or a file; the next line would fail as well
	p.times(show.result, false)
	p.failure(scene, show.result)
	return &show.result
}
