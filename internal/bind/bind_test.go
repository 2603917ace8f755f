// SPDX-License-Identifier: Apache-2.0

package bind

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

type binderFunc func(context.Context, Request) error

func (f binderFunc) Bind(ctx context.Context, r Request) error { return f(ctx, r) }

var asked = Request{Pod: "p", Version: "41", Node: "n1"}

// by connects by what is given.
func by(t http.RoundTripper) func() (http.RoundTripper, error) {
	return func() (http.RoundTripper, error) { return t, nil }
}

// A client hears what the Binder behind the server said.
func TestClientHearsTheBinder(t *testing.T) {
	for name, test := range map[string]struct {
		binder    Binder
		bound     bool
		useTicket bool
	}{
		"bound":              {binderFunc(func(context.Context, Request) error { return nil }), true, false},
		"it needs a ticket":  {binderFunc(func(context.Context, Request) error { return fmt.Errorf("%w: held", ErrUseTicket) }), false, true},
		"nobody knows":       {binderFunc(func(context.Context, Request) error { return errors.New("no answer") }), false, false},
		"nobody leads there": {nil, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewTLSServer(Handler(func() Binder { return test.binder }))
			defer s.Close()
			err := NewClient(s.URL, by(s.Client().Transport), 10*time.Second).Bind(t.Context(), asked)
			if (err == nil) != test.bound || errors.Is(err, ErrUseTicket) != test.useTicket {
				t.Errorf("it hears %v", err)
			}
		})
	}
}

// The request arrives as it was sent.
func TestRequestArrives(t *testing.T) {
	var got Request
	s := httptest.NewTLSServer(Handler(func() Binder {
		return binderFunc(func(_ context.Context, r Request) error { got = r; return nil })
	}))
	defer s.Close()
	if err := NewClient(s.URL, by(s.Client().Transport), 10*time.Second).Bind(t.Context(), asked); err != nil || got != asked {
		t.Errorf("%+v arrives, %v", got, err)
	}
}

// What can't be understood is refused with what is wrong, and binds nobody.
func TestBadRequests(t *testing.T) {
	s := httptest.NewServer(Handler(func() Binder {
		return binderFunc(func(context.Context, Request) error { t.Error("it is carried out"); return nil })
	}))
	defer s.Close()
	for name, test := range map[string]struct {
		body, kind string
		code       int
	}{
		"not JSON":           {"{", "application/json", http.StatusBadRequest},
		"no pod":             {`{"version":"1","node":"n"}`, "application/json", http.StatusBadRequest},
		"no version":         {`{"pod":"p","node":"n"}`, "application/json", http.StatusBadRequest},
		"no node":            {`{"pod":"p","version":"1"}`, "application/json", http.StatusBadRequest},
		"another field":      {`{"pod":"p","version":"1","node":"n","force":true}`, "application/json", http.StatusBadRequest},
		"two requests":       {`{"pod":"p","version":"1","node":"n"}{}`, "application/json", http.StatusBadRequest},
		"null":               {`null`, "application/json", http.StatusBadRequest},
		"a list":             {`[]`, "application/json", http.StatusBadRequest},
		"too much":           {`{"pod":"` + strings.Repeat("p", maxRequestBytes) + `"}`, "application/json", http.StatusRequestEntityTooLarge},
		"another media type": {`{"pod":"p","version":"1","node":"n"}`, "text/plain", http.StatusUnsupportedMediaType},
	} {
		answer, err := http.Post(s.URL+Path, test.kind, strings.NewReader(test.body))
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != test.code {
			t.Errorf("%s: %s, want %d", name, answer.Status, test.code)
		}
	}
	if answer, err := http.Get(s.URL + Path); err != nil || answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: %v, %v", answer.Status, err)
	}
}

// A request that reached nobody needs a ticket; of one that was sent and not answered
// nobody knows. Either way nobody is asked for a moment.
func TestNoAnswer(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }))
	defer silent.Close()
	for name, test := range map[string]struct {
		url       string
		useTicket bool
	}{"nobody is there": {gone.URL, true}, "the connection breaks": {silent.URL, false}} {
		now := time.Unix(1000, 0)
		c := NewClient(test.url, by(&http.Transport{}), 10*time.Second)
		c.now = func() time.Time { return now }
		if err := c.Bind(t.Context(), asked); err == nil || errors.Is(err, ErrUseTicket) != test.useTicket {
			t.Errorf("%s: %v", name, err)
		}
		if err := c.Bind(t.Context(), asked); !errors.Is(err, ErrUseTicket) {
			t.Errorf("%s, again: %v", name, err)
		}
		now = now.Add(restAfterFailure)
		if err := c.Bind(t.Context(), asked); errors.Is(err, ErrUseTicket) != test.useTicket {
			t.Errorf("%s, later: %v", name, err)
		}
	}
}

// An answer that no server of ours gives is no word on the pod, unless it says that the
// request was at fault.
func TestStrangeAnswers(t *testing.T) {
	for code, useTicket := range map[int]bool{
		http.StatusOK: false, http.StatusFound: false, http.StatusNotFound: true, http.StatusForbidden: true, http.StatusInternalServerError: false, http.StatusBadGateway: false,
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(code)
		}))
		err := NewClient(s.URL, by(&http.Transport{}), 10*time.Second).Bind(t.Context(), asked)
		s.Close()
		if err == nil || errors.Is(err, ErrUseTicket) != useTicket {
			t.Errorf("%d: %v", code, err)
		}
	}
}
