// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/web"
	"github.com/moorage-dev/moorage/test/sandbox"
)

// The sides of the demo's page.
const (
	moorageSide = iota
	upstreamSide
)

// show is the demo's page. Every method of a nil show does nothing.
type show struct {
	page  *web.Pair
	ended chan error // of serving it; nil where it is not served
	stop  context.CancelFunc
}

// newShow makes the page that the flags ask for, nil for none, and serves it.
func newShow(ctx context.Context, o *demoOptions, out io.Writer) (*show, error) {
	if !o.web && o.out == "" {
		return nil, nil
	}
	s := &show{page: web.NewPair("Moorage on a real cluster", "Moorage", "Upstream"), stop: func() {}}
	if !o.web {
		return s, nil
	}
	ctx, s.stop = context.WithCancel(ctx)
	s.ended = make(chan error, 1)
	address := make(chan string, 1)
	go func() { s.ended <- s.page.Serve(ctx, func(url string) { address <- url }) }()
	select {
	case url := <-address:
		fmt.Fprintf(out, "The page, for as long as the demo runs: %s\n", url)
		return s, nil
	case err := <-s.ended:
		return nil, err
	}
}

// started has the page show each cluster of a side, for as long as it runs.
func (s *show) started(side int) func(*sandbox.Cluster) func() {
	if s == nil {
		return nil
	}
	return func(c *sandbox.Cluster) func() {
		stop, err := s.page.Follow(side, c.RESTConfig(), "moorage-sandbox")
		if err != nil {
			s.page.Tell(side, err.Error())
			return func() {}
		}
		return stop
	}
}

func (s *show) scene(number int, scene sandbox.Scene) {
	if s == nil {
		return
	}
	s.page.Chapter(fmt.Sprintf("%d  %s", number, scene.Title), scene.Intro)
	if !scene.Upstream {
		s.page.Tell(upstreamSide, "Upstream has no part in this scene.")
	}
}

func (s *show) tell(side int, text string) {
	if s != nil {
		s.page.Tell(side, text)
	}
}

// verdict says how a scene ended at a side.
func (s *show) verdict(side int, r sandbox.Result) {
	if r.Passed {
		s.tell(side, "✓ "+judged(r))
	} else {
		s.tell(side, "✗ not as expected: "+r.Error)
	}
}

// close ends the page, and writes it into a file where one is named.
func (s *show) close(file string, out io.Writer) error {
	if s == nil {
		return nil
	}
	err := s.page.Close()
	s.stop()
	if s.ended != nil {
		err = errors.Join(err, <-s.ended)
	}
	if err != nil || file == "" {
		return err
	}
	if err := command.WriteWhole(file, s.page.Write); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s shows the demo again, with a slider for the time. Open it in a browser.\n", file)
	return nil
}
