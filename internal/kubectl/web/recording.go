// SPDX-License-Identifier: Apache-2.0

package web

import (
	"time"
)

// recording is what a page of one file has of what happened. Only one goroutine uses it.
type recording struct {
	messages []message // the first has a view, each other one leads on from the one before
	frames   []frame   // of the messages
}

// frame is a time at which there is something to see.
type frame struct {
	At time.Time `json:"at"`
}

// add adds the next message. Those that only tell of a problem, or of nothing, are left out.
func (r *recording) add(m message) error {
	if m.View == nil && m.Delta == nil {
		return nil
	}
	m.Frozen, m.Replay, m.Problem = true, true, ""
	r.messages, r.frames = append(r.messages, m), append(r.frames, frame{m.Now})
	return nil
}

// static is a page of one file that shows the recording.
func (r *recording) static() Static {
	return Static{Source: r.messages[0].Source, Taken: r.frames[0].At, messages: r.messages, frames: r.frames}
}
