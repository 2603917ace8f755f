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

	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/kubectl/unpack"
	"github.com/moorage-dev/moorage/internal/kubectl/view"
)

// recordingFormat is the version of a recording: a file that is compressed with gzip, whose
// first line is a heading, and each other line a message as a browser gets it.
const recordingFormat = 1

// mostFrames bounds the times of a recording: at one a second they are twelve days.
const mostFrames = 1 << 20

// The years that a recording may be of.
const firstYear, lastYear = 1970, 9000

type heading struct {
	MoorageRecording int `json:"moorageRecording"`
}

// record writes what happens until ctx ends, so that each line is in the file at once.
func (s *server) record(ctx context.Context, w io.Writer) error {
	zip := gzip.NewWriter(w)
	line := func(value any) error {
		raw, err := facts.JSON(value)
		if err == nil {
			_, err = zip.Write(append(raw, '\n'))
		}
		return err
	}
	err := line(heading{recordingFormat})
	if err == nil {
		err = s.each(ctx, nil, func(m message) error { return errors.Join(line(m), zip.Flush()) })
	}
	return errors.Join(err, zip.Close())
}

// recording is one that was read.
type recording struct {
	messages []message       // the first has a view, each other one leads on from the one before
	frames   []frame         // of the messages
	waits    map[string]bool // who waits after the last message, by reference
}

// frame is what there is to see at a time.
type frame struct {
	At    time.Time `json:"at"`
	Waits int       `json:"waits"`
}

// until is a reader that ends with an error once a context has.
type until struct {
	context.Context
	io.Reader
}

// Read reads on.
func (u until) Read(p []byte) (int, error) {
	if err := u.Err(); err != nil {
		return 0, err
	}
	return u.Reader.Read(p)
}

// readRecording reads a recording of a size in bytes until ctx ends. One that was cut off is
// read as far as it goes.
func readRecording(ctx context.Context, r io.Reader, size int64, source string) (*recording, error) {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	in := json.NewDecoder(unpack.Of(size).Reader(until{ctx, zip}))
	var h heading
	if err := in.Decode(&h); err != nil {
		return nil, err
	}
	if h.MoorageRecording != recordingFormat {
		return nil, fmt.Errorf("its format is %d, and this program reads format %d", h.MoorageRecording, recordingFormat)
	}
	out := &recording{}
	for {
		var m message
		if err := in.Decode(&m); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if err := out.add(m, source); err != nil {
			return nil, err
		}
	}
	if len(out.messages) == 0 {
		return nil, errors.New("it has no view")
	}
	return out, nil
}

// add adds the next message. Those that only tell of a problem are left out.
func (r *recording) add(m message, source string) error {
	switch {
	case m.View != nil:
		r.waits = map[string]bool{}
		r.wait(m.View.Waits, nil)
	case m.Delta == nil:
		return nil
	case len(r.messages) == 0:
		return errors.New("it does not begin with a view")
	case m.From != r.messages[len(r.messages)-1].Seq:
		return fmt.Errorf("what leads to view %d is missing", m.From)
	default:
		r.wait(m.Delta.Waits, m.Delta.Gone.Waits)
	}
	if year := m.Now.UTC().Year(); year < firstYear || year > lastYear {
		return fmt.Errorf("one of its times is in the year %d", year)
	}
	if len(r.frames) == mostFrames {
		return fmt.Errorf("it has more than %d times", mostFrames)
	}
	m.Frozen, m.Replay, m.Source, m.Problem = true, true, source, ""
	r.messages, r.frames = append(r.messages, m), append(r.frames, frame{m.Now, len(r.waits)})
	return nil
}

// wait notes who waits, and who no longer does.
func (r *recording) wait(list []view.Wait, gone []string) {
	for _, ref := range gone {
		delete(r.waits, ref)
	}
	for i := range list {
		r.waits[list[i].Ref] = true
	}
}

// beat is what a page gets on its own: first how the recording begins, then only that it is
// still there.
func (r *recording) beat(first bool) message {
	m := r.messages[0]
	if !first {
		m.View = nil
	}
	return m
}

// mostMessages bounds the messages of one answer.
const mostMessages = 64

// serveFrames lists the times that can be looked at.
func (s *server) serveFrames(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s.recorded.frames) // who asked has gone
}

// serveMessages answers what leads from one of them to the next, a part at a time.
func (s *server) serveMessages(w http.ResponseWriter, r *http.Request) {
	from, err := strconv.Atoi(r.URL.Query().Get("from"))
	if err != nil || from < 0 || from >= len(s.recorded.messages) {
		http.Error(w, "there is no such time", http.StatusNotFound)
		return
	}
	rest := s.recorded.messages[from:]
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(rest[:min(len(rest), mostMessages)]) // who asked has gone
}

// static is a page of one file that shows the recording.
func (r *recording) static() Static {
	return Static{Source: r.messages[0].Source, Taken: r.frames[0].At, messages: r.messages, frames: r.frames}
}
