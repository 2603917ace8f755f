// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/moorage-dev/moorage/internal/kubectl/archive"
	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
	"github.com/moorage-dev/moorage/internal/kubectl/view"
)

// replay is a file that is looked at, at any of its times. Safe for parallel use.
type replay struct {
	archive *archive.Archive
	connect func(ctx context.Context, m archive.Moment) (*cluster.Cluster, error)
	file    string
	style   screen.Style // of text: its commands ask the file
	places  []int        // of the frames in the archive's times
	frames  []frame      // what the slider goes through

	mu   sync.Mutex
	made []made // the last ones, the newest first
}

// made is a frame that was made.
type made struct {
	frame int
	world *facts.World
	view  *view.View
}

// mostMade bounds the frames that are kept: a page asks for what leads from one to the other,
// and a cluster is large.
const mostMade = 4

// newReplay opens a file.
func newReplay(ctx context.Context, b *command.Base, file string) (*replay, error) {
	a, err := archive.Open(ctx, file)
	if err != nil {
		return nil, err
	}
	r := &replay{archive: a, connect: b.ConnectTo, file: file, style: b.Plain()}
	r.style.Bundle = file
	times := a.Times()
	for i, at := range times {
		if i == 0 || i == len(times)-1 || a.Busy(i) {
			r.places, r.frames = append(r.places, i), append(r.frames, frame{at})
		}
	}
	return r, nil
}

// at is a frame, which is kept for a while.
func (r *replay) at(ctx context.Context, i int) (made, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.made {
		if m.frame == i {
			return m, nil
		}
	}
	m, err := r.make(ctx, i)
	if err != nil {
		return m, err
	}
	r.made = append([]made{m}, r.made[:min(len(r.made), mostMade-1)]...)
	return m, nil
}

func (r *replay) make(ctx context.Context, i int) (made, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c, err := r.connect(ctx, r.archive.Moment(r.places[i]))
	if err != nil {
		return made{}, err
	}
	w, err := c.Read(ctx)
	if err != nil {
		return made{}, err
	}
	c.ReadStarting(ctx, w)
	// Not as the frame's: each would differ from the one before in every command.
	return made{i, w, viewOf(w, r.style)}, nil
}

// message leads from what a page has to a frame; from is negative where it has nothing.
func (r *replay) message(ctx context.Context, from, to int) (message, error) {
	m := message{Seq: seqOf(to), Now: r.frames[to].At, Frozen: true, Replay: true, Source: filepath.Base(r.file)}
	is, err := r.at(ctx, to)
	if err != nil {
		return m, err
	}
	if from < 0 {
		m.View = is.view
		return m, nil
	}
	was, err := r.at(ctx, from)
	if err != nil {
		return m, err
	}
	d := view.Diff(was.view, is.view)
	m.From, m.Delta = seqOf(from), &d
	return m, nil
}

// seqOf is what messages call a frame: they have no zero.
func seqOf(frame int) uint64 { return uint64(frame) + 1 } //nolint:gosec // a place in a list

// beat is what a page gets on its own: first how the file begins, then only that it is still
// there.
func (r *replay) beat(ctx context.Context, first bool) (message, error) {
	if first {
		return r.message(ctx, -1, 0)
	}
	return message{Seq: seqOf(0), Now: r.frames[0].At, Frozen: true, Replay: true, Source: filepath.Base(r.file)}, nil
}

// detail is what is known of an object at a frame.
func (r *replay) detail(ctx context.Context, ref string, frame int) (Detail, error) {
	m, err := r.at(ctx, frame)
	if err != nil {
		return Detail{}, err
	}
	moment := r.archive.Moment(r.places[frame])
	c, err := r.connect(ctx, moment)
	if err != nil {
		return Detail{}, err
	}
	return (&details{cluster: c, world: m.world, style: r.styleAt(frame)}).of(ctx, ref)
}

// styleAt is that of a frame's text, whose commands ask the file as it was then.
func (r *replay) styleAt(frame int) screen.Style {
	s := r.style
	if len(r.frames) > 1 {
		s.At = r.archive.Moment(r.places[frame]).Now.UTC().Format(time.RFC3339Nano)
	}
	return s
}

// place reads a frame from a request; negative where there is no such parameter.
func (r *replay) place(request *http.Request, name string) (int, error) {
	text := request.URL.Query().Get(name)
	if text == "" {
		return -1, nil
	}
	i, err := strconv.Atoi(text)
	if err != nil || i < 0 || i >= len(r.frames) {
		return 0, &command.NotFoundError{Message: fmt.Sprintf("there is no time %q", text)}
	}
	return i, nil
}

// serveFrames lists the times that can be looked at.
func (s *server) serveFrames(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s.replay.frames) // who asked has gone
}

// serveView answers what leads from one of them to another.
func (s *server) serveView(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(ctx context.Context) (any, error) {
		at, err := s.replay.place(r, "at")
		if err != nil || at < 0 {
			return nil, &command.NotFoundError{Message: "there is no such time"}
		}
		from, err := s.replay.place(r, "from")
		if err != nil {
			return nil, err
		}
		return s.replay.message(ctx, from, at)
	})
}

// Place says that a volume's slot at a node has become another one; empty for none.
type Place struct {
	Node string    `json:"node"`
	At   time.Time `json:"at"`
	From string    `json:"from,omitempty"`
	To   string    `json:"to,omitempty"`
}

// mostPast bounds the frames that are made to tell where a volume has been: the last ones.
const mostPast = 200

// past is where a volume has been, from the first frame on: as the frames show it at which
// something that names it has changed.
func (r *replay) past(ctx context.Context, key string, names ...string) ([]Place, error) {
	changed := r.archive.Naming(names)
	var frames []int
	for i, place := range r.places {
		if i == 0 || changed[place] {
			frames = append(frames, i)
		}
	}
	list, slots := []Place{}, map[string]string{}
	for n, i := range frames[max(0, len(frames)-mostPast):] {
		m, err := r.make(ctx, i)
		if err != nil {
			return nil, err
		}
		now := m.view.SlotsOf(key)
		for node, is := range now {
			if n > 0 && slots[node] != is {
				list = append(list, Place{node, r.frames[i].At, slots[node], is})
			}
		}
		for node, was := range slots {
			if _, stays := now[node]; !stays {
				list = append(list, Place{node, r.frames[i].At, was, ""})
			}
		}
		slots = now
	}
	return list, nil
}

// servePast answers where a volume has been.
func (s *server) servePast(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(ctx context.Context) (any, error) {
		q := r.URL.Query()
		return s.replay.past(ctx, q.Get("volume"), q["name"]...)
	})
}

// mostWritten bounds the times of a page of one file. Of more, each counts that has as many
// before it as the others.
const mostWritten = 5000

// write makes a recording of all times at which something differs to look at.
func (r *replay) write(ctx context.Context) (*recording, error) {
	out := &recording{}
	step := max(1, (len(r.frames)+mostWritten-1)/mostWritten)
	last := -1
	for i := 0; i < len(r.frames); i++ {
		if i%step != 0 && i != len(r.frames)-1 {
			continue
		}
		m, err := r.message(ctx, last, i)
		if err != nil {
			return nil, fmt.Errorf("at %s: %w", r.frames[i].At.Format(time.RFC3339Nano), err)
		}
		if m.Delta != nil && m.Delta.Empty() && i != len(r.frames)-1 {
			continue
		}
		last = i
		_ = out.add(m) // there is nothing that could fail
	}
	return out, nil
}
