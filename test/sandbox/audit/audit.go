// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

type Event struct {
	Stage string `json:"stage"`
	Verb  string `json:"verb"`
	User  User   `json:"user"`
	// Impersonated is nil if the user acted as itself.
	Impersonated *User   `json:"impersonatedUser"`
	UserAgent    string  `json:"userAgent"`
	Object       *Object `json:"objectRef"`
	// RequestURI is the only name of requests without a resource.
	RequestURI string    `json:"requestURI"`
	Received   time.Time `json:"requestReceivedTimestamp"`
	Finished   time.Time `json:"stageTimestamp"`
	Response   struct {
		Code    int    `json:"code"`
		Reason  string `json:"reason"`
		Message string `json:"message"`
	} `json:"responseStatus"`
	Annotations map[string]string `json:"annotations"`
}

type User struct {
	Username string   `json:"username"`
	Groups   []string `json:"groups"`
}

type Object struct {
	Resource    string `json:"resource"`
	Subresource string `json:"subresource"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
	APIGroup    string `json:"apiGroup"`
	APIVersion  string `json:"apiVersion"`
}

func (e Event) Actor() string {
	if e.Impersonated != nil {
		return e.Impersonated.Username
	}
	return e.User.Username
}

func (o *Object) Path() string {
	switch {
	case o == nil:
		return ""
	case o.Subresource != "":
		return o.Resource + "/" + o.Subresource
	}
	return o.Resource
}

const stageComplete = "ResponseComplete"

// IsWrite says whether the request was answered and changed something. Leases and access reviews don't
// count.
func (e Event) IsWrite() bool {
	if e.Stage != stageComplete || e.Object == nil {
		return false
	}
	switch e.Object.APIGroup {
	case "coordination.k8s.io", "authentication.k8s.io", "authorization.k8s.io":
		return false
	}
	if e.Object.Subresource == "token" {
		return false
	}
	switch e.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// Denied says whether authorization or an admission policy refused the request. A refusal by a namespace
// that is being deleted doesn't count.
func (e Event) Denied() bool {
	return e.Annotations["authorization.k8s.io/decision"] == "forbid" ||
		e.Response.Code == 403 && !strings.HasSuffix(e.Response.Message, "because it is being terminated")
}

func (e Event) String() string {
	what := e.RequestURI
	if e.Object != nil {
		what = e.Object.Path()
		if e.Object.Namespace != "" {
			what += " " + e.Object.Namespace + "/" + e.Object.Name
		} else if e.Object.Name != "" {
			what += " " + e.Object.Name
		}
	}
	return fmt.Sprintf("%s %s %s by %s: %d %s", e.Received.Format("15:04:05.000"), e.Verb, what, e.User.Username, e.Response.Code, e.Response.Message)
}

// Reader reads a log that is still being written, from a position on. It is
// not safe for parallel use.
type Reader struct {
	path   string
	offset int64
}

// From's Reader begins with the line that is being written.
func From(path string) (*Reader, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	return &Reader{path: path, offset: int64(bytes.LastIndexByte(data, '\n') + 1)}, nil
}

func Begin(path string) *Reader { return &Reader{path: path} }

// Read returns the events since the Reader's position, and leaves the position. An unfinished line is left
// for the next time; a broken line is an error.
func (r *Reader) Read() ([]Event, error) {
	f, err := os.Open(r.path)
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	defer f.Close()
	if _, err := f.Seek(r.offset, io.SeekStart); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	return Parse(f)
}

// Next is Read, and moves the position behind the events.
func (r *Reader) Next() ([]Event, error) {
	f, err := os.Open(r.path)
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	defer f.Close()
	if _, err := f.Seek(r.offset, io.SeekStart); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	whole := bytes.LastIndexByte(data, '\n') + 1
	events, err := Parse(bytes.NewReader(data[:whole]))
	if err != nil {
		return nil, err
	}
	r.offset += int64(whole)
	return events, nil
}

func Parse(in io.Reader) ([]Event, error) {
	var out []Event
	lines := bufio.NewReader(in)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, fmt.Errorf("audit log: %w", err)
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var e Event
		if err := json.Unmarshal(line, &e); err != nil {
			return out, fmt.Errorf("audit log, line %d: %w", n, err)
		}
		out = append(out, e)
	}
}

func Denied(events []Event, match func(user string) bool) []Event {
	var out []Event
	for _, e := range events {
		if e.Denied() && match(e.User.Username) {
			out = append(out, e)
		}
	}
	return out
}

type Write struct {
	User     string `json:"user"`
	Verb     string `json:"verb"`
	Resource string `json:"resource"`
	Count    int    `json:"count"`
	Failed   int    `json:"failed,omitempty"`
}

func Writes(events []Event) []Write {
	type key struct{ user, resource, verb string }
	counts := map[key]*Write{}
	for _, e := range events {
		if !e.IsWrite() {
			continue
		}
		k := key{e.User.Username, e.Object.Path(), e.Verb}
		w := counts[k]
		if w == nil {
			w = &Write{User: k.user, Verb: k.verb, Resource: k.resource}
			counts[k] = w
		}
		w.Count++
		if e.Response.Code >= 400 {
			w.Failed++
		}
	}
	out := make([]Write, 0, len(counts))
	for _, w := range counts {
		out = append(out, *w)
	}
	slices.SortFunc(out, func(a, b Write) int {
		return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Verb, b.Verb))
	})
	return out
}
