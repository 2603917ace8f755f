// SPDX-License-Identifier: Apache-2.0

package web

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/moorage-dev/moorage/internal/kubectl/view"
)

// recordingFormat is the version of a recording: a file that is compressed with gzip, whose
// first line is a heading, and each other line a message as a browser gets it.
const recordingFormat = 1

// maxRecording bounds what is read of a recording, in bytes: it may come from anybody.
const maxRecording = 1 << 30

type heading struct {
	MoorageRecording int `json:"moorageRecording"`
}

// record writes what happens until ctx ends, so that each line is in the file at once.
func (s *server) record(ctx context.Context, w io.Writer) error {
	zip := gzip.NewWriter(w)
	out := json.NewEncoder(zip)
	err := out.Encode(heading{recordingFormat})
	if err == nil {
		err = s.each(ctx, nil, func(m message) error { return errors.Join(out.Encode(m), zip.Flush()) })
	}
	return errors.Join(err, zip.Close())
}

// recording is one that was read.
type recording struct {
	messages []message // the first has a view
	frames   []frame
}

// frame is what there is to see at a time.
type frame struct {
	At    time.Time `json:"at"`
	Waits int       `json:"waits"`
}

// readRecording reads a recording. One that was cut off is read as far as it goes.
func readRecording(r io.Reader) (*recording, error) {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	in := json.NewDecoder(io.LimitReader(zip, maxRecording))
	var h heading
	if err := in.Decode(&h); err != nil {
		return nil, err
	}
	if h.MoorageRecording != recordingFormat {
		return nil, fmt.Errorf("its format is %d, and this program reads format %d", h.MoorageRecording, recordingFormat)
	}
	out := &recording{}
	var now *view.View
	for {
		var m message
		if err := in.Decode(&m); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		} else if err != nil {
			return nil, err
		}
		switch {
		case m.View != nil:
			now = m.View
		case now == nil:
			return nil, errors.New("it does not begin with a view")
		case m.Delta != nil:
			now = now.Apply(*m.Delta)
		default:
			continue // only a problem
		}
		out.messages, out.frames = append(out.messages, m), append(out.frames, frame{m.Now, len(now.Waits)})
	}
	if now == nil {
		return nil, errors.New("it has no view")
	}
	return out, nil
}

// view is what there was to see at a frame.
func (r *recording) view(i int) *view.View {
	var now *view.View
	for _, m := range r.messages[:i+1] {
		if m.View != nil {
			now = m.View
		} else {
			now = now.Apply(*m.Delta)
		}
	}
	return now
}

// serveFrames lists the times that can be looked at.
func (s *server) serveFrames(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s.recorded.frames) // who asked has gone
}

// serveFrame answers what there was to see at one of them.
func (s *server) serveFrame(w http.ResponseWriter, r *http.Request) {
	i, err := strconv.Atoi(r.URL.Query().Get("at"))
	if err != nil || i < 0 || i >= len(s.recorded.frames) {
		http.Error(w, "there is no such time", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s.frame(i)) // who asked has gone
}

func (s *server) frame(i int) message {
	return message{Seq: uint64(i) + 1, View: s.recorded.view(i), Now: s.recorded.frames[i].At, Frozen: true, Source: s.source, Replay: true}
}
