// SPDX-License-Identifier: Apache-2.0

package service

import (
	"cmp"
	"fmt"
	"net/http"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// Write carries writes out or refuses them, each by itself. They are no calls: no fault hits them, no
// operation waits for them, and few are in the log (see package writes).
func (s *Service) Write(w diskapi.Writes) ([]diskapi.WriteAnswer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.failing(); err != nil {
		return nil, err
	}
	old := ""
	if n, ok := s.cloud.Node(w.Node); ok && n.Boot != w.Boot {
		old = fmt.Sprintf("node %s was switched off since its boot %d", w.Node, w.Boot)
	}
	answers := make([]diskapi.WriteAnswer, 0, len(w.Volumes))
	for _, v := range w.Volumes {
		refusal := cmp.Or(old, s.cloud.RefuseWrite(v.Volume, w.Node))
		if note, noted := s.writes.Take(w.Node, v, refusal); noted {
			s.note(note)
		}
		a := s.writes.Answer(v.Volume, w.Node)
		if refusal != "" {
			a.Refused = refusal
		}
		answers = append(answers, a)
	}
	return answers, s.appendErr
}

// flush adds the outcome of a writer's last flush; a refused flush leaves the disk as it was. The caller
// holds mu.
func (s *Service) flush(e diskapi.Entry) diskapi.Entry {
	if e.Write != nil && s.cloud.RefuseWrite(e.Volume, e.Node) != "" {
		mark := *e.Write
		mark.Flushed = s.writes.Flushed(e.Volume, e.Node)
		e.Write = &mark
	}
	return e
}

// The number is that of the copy's last write. The caller holds mu.
func (s *Service) copied(e diskapi.Entry) diskapi.Entry {
	if flushed, copied := s.cloud.Copied(e); copied {
		e.Write = &diskapi.WriteMark{Flushed: flushed}
	}
	return e
}

func (s *Service) postWrites(w http.ResponseWriter, r *http.Request) {
	var writes diskapi.Writes
	if err := decode(r, &writes); err != nil {
		reply(w, nil, err)
		return
	}
	answers, err := s.Write(writes)
	reply(w, answers, err)
}
