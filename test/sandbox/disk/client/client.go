// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// The service holds a request for the log for a minute at most.
const waitFor = 30 * time.Second

// Client is a client of the admin API, safe for parallel use.
type Client struct {
	BaseURL string
	// HTTP is http.DefaultClient if nil.
	HTTP *http.Client
}

type Error struct {
	Status  int
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("disk service: %s (HTTP %d)", e.Message, e.Status) }

func (c Client) Healthy(ctx context.Context) error {
	return c.do(ctx, http.MethodGet, "/healthz", nil, nil)
}

func (c Client) Log(ctx context.Context, since uint64, f diskapi.Filter) ([]diskapi.Entry, error) {
	page, err := c.page(ctx, since, 0, f)
	return page.Entries, err
}

func (c Client) Mark(ctx context.Context) (uint64, error) {
	s, err := c.Stats(ctx)
	return s.Seq, err
}

func (c Client) WaitFor(ctx context.Context, since uint64, f diskapi.Filter) (diskapi.Entry, error) {
	entries, err := c.WaitForN(ctx, since, f, 1)
	if err != nil {
		return diskapi.Entry{}, err
	}
	return entries[0], nil
}

func (c Client) WaitForN(ctx context.Context, since uint64, f diskapi.Filter, n int) ([]diskapi.Entry, error) {
	var found []diskapi.Entry
	for {
		page, err := c.page(ctx, since, waitFor, f)
		if err != nil {
			return found, fmt.Errorf("wait for %d log entries %v, have %d: %w", n, f.Values(), len(found), err)
		}
		if found = append(found, page.Entries...); len(found) >= n {
			return found[:n], nil
		}
		since = page.Last
	}
}

func (c Client) page(ctx context.Context, since uint64, wait time.Duration, f diskapi.Filter) (diskapi.LogPage, error) {
	q := f.Values()
	q.Set("since", strconv.FormatUint(since, 10))
	if wait > 0 {
		q.Set("wait", wait.String())
	}
	var page diskapi.LogPage
	err := c.do(ctx, http.MethodGet, "/log?"+q.Encode(), nil, &page)
	return page, err
}

func (c Client) Violations(ctx context.Context, since uint64) ([]diskapi.Violation, error) {
	var v []diskapi.Violation
	err := c.do(ctx, http.MethodGet, "/violations?since="+strconv.FormatUint(since, 10), nil, &v)
	return v, err
}

func (c Client) Finish(ctx context.Context) ([]diskapi.Violation, error) {
	var v []diskapi.Violation
	err := c.do(ctx, http.MethodPost, "/finish", nil, &v)
	return v, err
}

func (c Client) Disks(ctx context.Context) ([]diskapi.Disk, error) {
	var v []diskapi.Disk
	err := c.do(ctx, http.MethodGet, "/disks", nil, &v)
	return v, err
}

func (c Client) Snapshots(ctx context.Context) ([]diskapi.Snapshot, error) {
	var v []diskapi.Snapshot
	err := c.do(ctx, http.MethodGet, "/snapshots", nil, &v)
	return v, err
}

func (c Client) Stats(ctx context.Context) (diskapi.Stats, error) {
	var v diskapi.Stats
	err := c.do(ctx, http.MethodGet, "/stats", nil, &v)
	return v, err
}

// Do makes a CSI call. A refusal is an Answer, not an error.
func (c Client) Do(ctx context.Context, r diskapi.Request) (diskapi.Answer, error) {
	var a diskapi.Answer
	err := c.do(ctx, http.MethodPost, "/calls", r, &a)
	return a, err
}

// Write answers each write. A refusal is an answer; after an error it is open which writes were carried
// out.
func (c Client) Write(ctx context.Context, w diskapi.Writes) ([]diskapi.WriteAnswer, error) {
	var answers []diskapi.WriteAnswer
	err := c.do(ctx, http.MethodPost, "/writes", w, &answers)
	return answers, err
}

// Held reports that a node has done its part, and returns when the fault that holds its answer is cleared.
func (c Client) Held(ctx context.Context, faultID string, r diskapi.Request) error {
	return c.do(ctx, http.MethodPost, "/faults/"+segment(faultID)+"/held", r, nil)
}

func (c Client) do(ctx context.Context, method, path string, body, into any) error {
	req, err := c.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	h := c.HTTP
	if h == nil {
		h = http.DefaultClient
	}
	resp, err := h.Do(req)
	if err != nil {
		return fmt.Errorf("is the disk service running? %w", err)
	}
	defer resp.Body.Close()
	return read(resp, into)
}

func (c Client) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var payload io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode the request: %w", err)
		}
		payload = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.BaseURL, "/")+path, payload)
	if err != nil {
		return nil, fmt.Errorf("address of the disk service: %w", err)
	}
	return req, nil
}

func read(resp *http.Response, into any) error {
	d := json.NewDecoder(resp.Body)
	if resp.StatusCode != http.StatusOK {
		var p diskapi.Problem
		if err := d.Decode(&p); err != nil {
			p.Message = resp.Status
		}
		return &Error{Status: resp.StatusCode, Message: p.Message}
	}
	if into == nil {
		return nil
	}
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("answer of the disk service: %w", err)
	}
	return nil
}

func segment(id string) string { return url.PathEscape(id) }
