// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"sort"
	"strings"
)

type Remote struct {
	dir    string
	client *http.Client
}

var ErrNotRunning = errors.New("no sandbox is running")

// Find without a name returns the only running cluster.
func Find(ctx context.Context, base, name string) (*Remote, error) {
	if base == "" {
		base = DefaultBaseDir()
	}
	if name != "" {
		r := connectTo(filepath.Join(base, name))
		if _, err := r.Info(ctx); err != nil {
			return nil, fmt.Errorf("cluster %s: %w: start it with `up --name %s`", name, ErrNotRunning, name)
		}
		return r, nil
	}
	running, err := List(ctx, base)
	if err != nil {
		return nil, err
	}
	switch len(running) {
	case 0:
		return nil, fmt.Errorf("%w in %s: start one with `up`", ErrNotRunning, base)
	case 1:
		return connectTo(running[0].Dir), nil
	}
	names := make([]string, len(running))
	for i, info := range running {
		names[i] = info.Name
	}
	return nil, fmt.Errorf("%d sandboxes are running: choose one of %s with --name", len(running), strings.Join(names, ", "))
}

func List(ctx context.Context, base string) ([]Info, error) {
	if base == "" {
		base = DefaultBaseDir()
	}
	sockets, err := filepath.Glob(filepath.Join(base, "*", controlSocket))
	if err != nil {
		return nil, fmt.Errorf("look for clusters in %s: %w", base, err)
	}
	var out []Info
	for _, socket := range sockets {
		if info, err := connectTo(filepath.Dir(socket)).Info(ctx); err == nil {
			out = append(out, info)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out, nil
}

func connectTo(dir string) *Remote {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", filepath.Join(dir, controlSocket))
	}
	return &Remote{dir: dir, client: &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

func (r *Remote) Info(ctx context.Context) (Info, error) {
	var info Info
	body, err := r.do(ctx, http.MethodGet, "/info", nil)
	if err != nil {
		return info, err
	}
	if err := json.Unmarshal(body, &info); err != nil {
		return info, fmt.Errorf("answer of the sandbox: %w", err)
	}
	return info, nil
}

func (r *Remote) Do(ctx context.Context, action FaultAction, target string) error {
	_, err := r.do(ctx, http.MethodPost, "/fault", faultRequest{Action: action, Target: target})
	return err
}

// Stop waits until all processes of the cluster have ended, and its name is free.
func (r *Remote) Stop(ctx context.Context) error {
	if _, err := r.do(ctx, http.MethodPost, "/stop", nil); err != nil {
		return err
	}
	return awaitFree(ctx, r.dir+".lock")
}

func (r *Remote) do(ctx context.Context, method, path string, body any) ([]byte, error) {
	var payload bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&payload).Encode(body); err != nil {
			return nil, fmt.Errorf("ask the sandbox: %w", err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://sandbox"+path, &payload)
	if err != nil {
		return nil, fmt.Errorf("ask the sandbox: %w", err)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the sandbox in %s: %w", r.dir, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("answer of the sandbox: %w", err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return nil, errors.New(strings.TrimSpace(string(answer)))
	}
	return answer, nil
}
