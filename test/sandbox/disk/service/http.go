// SPDX-License-Identifier: Apache-2.0

package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/gorilla/mux"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

const maxWait = time.Minute

// maxBody is in bytes.
const maxBody = 1 << 20

func (s *Service) Handler() http.Handler {
	r := mux.NewRouter()
	r.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { reply(w, "ok", nil) }).Methods(http.MethodGet)
	r.HandleFunc("/log", s.getLog).Methods(http.MethodGet)
	r.HandleFunc("/violations", s.getViolations).Methods(http.MethodGet)
	r.HandleFunc("/stats", func(w http.ResponseWriter, _ *http.Request) { reply(w, s.Stats(), nil) }).Methods(http.MethodGet)
	r.HandleFunc("/disks", func(w http.ResponseWriter, _ *http.Request) { reply(w, s.Disks(), nil) }).Methods(http.MethodGet)
	r.HandleFunc("/disks/{volume}/health", s.putHealth).Methods(http.MethodPut)
	r.HandleFunc("/snapshots", func(w http.ResponseWriter, _ *http.Request) { reply(w, s.Snapshots(), nil) }).Methods(http.MethodGet)
	r.HandleFunc("/nodes", func(w http.ResponseWriter, _ *http.Request) { reply(w, s.Nodes(), nil) }).Methods(http.MethodGet)
	r.HandleFunc("/nodes/{id}", s.getNode).Methods(http.MethodGet)
	r.HandleFunc("/nodes/{id}", s.patchNode).Methods(http.MethodPatch)
	r.HandleFunc("/faults", func(w http.ResponseWriter, _ *http.Request) { reply(w, s.Faults(), nil) }).Methods(http.MethodGet)
	r.HandleFunc("/faults", s.postFault).Methods(http.MethodPost)
	r.HandleFunc("/faults", s.deleteFault).Methods(http.MethodDelete)
	r.HandleFunc("/faults/{id}", s.deleteFault).Methods(http.MethodDelete)
	r.HandleFunc("/faults/{id}/held", s.postHeld).Methods(http.MethodPost)
	r.HandleFunc("/latency", s.putLatency).Methods(http.MethodPut)
	r.HandleFunc("/calls", s.postCall).Methods(http.MethodPost)
	r.HandleFunc("/writes", s.postWrites).Methods(http.MethodPost)
	r.HandleFunc("/finish", s.postFinish).Methods(http.MethodPost)
	return r
}

func (s *Service) getLog(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	since, err := number(q, "since")
	if err != nil {
		reply(w, nil, err)
		return
	}
	var wait time.Duration
	if v := q.Get("wait"); v != "" {
		if wait, err = time.ParseDuration(v); err != nil {
			reply(w, nil, fmt.Errorf("wait: %w: use a duration such as 20s", err))
			return
		}
	}
	reply(w, s.search(r, since, min(wait, maxWait), diskapi.FilterFrom(q)), nil)
}

func (s *Service) search(r *http.Request, since uint64, wait time.Duration, f diskapi.Filter) diskapi.LogPage {
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	page := diskapi.LogPage{Entries: []diskapi.Entry{}, Last: since}
	for {
		entries, grown := s.since(page.Last)
		for _, e := range entries {
			page.Last = e.Seq
			if f.Matches(e) {
				page.Entries = append(page.Entries, e)
			}
		}
		if len(page.Entries) > 0 || wait <= 0 {
			return page
		}
		select {
		case <-grown:
		case <-timeout.C:
			return page
		case <-r.Context().Done():
			return page
		case <-s.life.Done():
			return page
		}
	}
}

func (s *Service) getViolations(w http.ResponseWriter, r *http.Request) {
	since, err := number(r.URL.Query(), "since")
	if err != nil {
		reply(w, nil, err)
		return
	}
	reply(w, s.Violations(since), nil)
}

func (s *Service) getNode(w http.ResponseWriter, r *http.Request) {
	n, err := s.Node(mux.Vars(r)["id"])
	reply(w, n, err)
}

func (s *Service) patchNode(w http.ResponseWriter, r *http.Request) {
	var change diskapi.NodeChange
	if err := decode(r, &change); err != nil {
		reply(w, nil, err)
		return
	}
	n, err := s.ChangeNode(mux.Vars(r)["id"], change)
	reply(w, n, err)
}

func (s *Service) postFault(w http.ResponseWriter, r *http.Request) {
	var f diskapi.Fault
	if err := decode(r, &f); err != nil {
		reply(w, nil, err)
		return
	}
	f, err := s.SetFault(f)
	reply(w, f, err)
}

func (s *Service) deleteFault(w http.ResponseWriter, r *http.Request) {
	reply(w, struct{}{}, s.ClearFaults(mux.Vars(r)["id"]))
}

func (s *Service) postHeld(w http.ResponseWriter, r *http.Request) {
	var req diskapi.Request
	if err := decode(r, &req); err != nil {
		reply(w, nil, err)
		return
	}
	reply(w, struct{}{}, s.Hold(r.Context(), mux.Vars(r)["id"], req))
}

func (s *Service) putLatency(w http.ResponseWriter, r *http.Request) {
	var l diskapi.Latency
	if err := decode(r, &l); err != nil {
		reply(w, nil, err)
		return
	}
	reply(w, l, s.SetLatency(l))
}

func (s *Service) putHealth(w http.ResponseWriter, r *http.Request) {
	var list []diskapi.Health
	if err := decode(r, &list); err != nil {
		reply(w, nil, err)
		return
	}
	reply(w, struct{}{}, s.SetHealth(mux.Vars(r)["volume"], list))
}

func (s *Service) postCall(w http.ResponseWriter, r *http.Request) {
	var req diskapi.Request
	if err := decode(r, &req); err != nil {
		reply(w, nil, err)
		return
	}
	reply(w, s.Do(r.Context(), req), nil)
}

func (s *Service) postFinish(w http.ResponseWriter, _ *http.Request) {
	v, err := s.Finish()
	reply(w, v, err)
}

func number(q url.Values, key string) (uint64, error) {
	v := q.Get(key)
	if v == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w: use a sequence number", key, err)
	}
	return n, nil
}

func decode(r *http.Request, into any) error {
	d := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxBody))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("body: %w", err)
	}
	return nil
}

// A value that can't be written has no reader any more.
func reply(w http.ResponseWriter, value any, err error) {
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		status := http.StatusBadRequest
		if errors.Is(err, ErrNotFound) {
			status = http.StatusNotFound
		}
		w.WriteHeader(status)
		value = diskapi.Problem{Message: err.Error()}
	}
	_ = json.NewEncoder(w).Encode(value)
}
