// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/test/sandbox/internal/supervise"
)

// Other processes of the same user reach the cluster by this unix socket in its folder.
const controlSocket = "control.sock"

type Info struct {
	Name       string             `json:"name"`
	Dir        string             `json:"dir"`
	Kubeconfig string             `json:"kubeconfig"`
	DiskURL    string             `json:"diskURL"`
	Shape      Shape              `json:"shape"`
	Cut        []string           `json:"cut,omitempty"`
	Processes  []supervise.Status `json:"processes"`
}

type FaultAction string

const (
	ActionKill     FaultAction = "kill"
	ActionStart    FaultAction = "start"
	ActionPause    FaultAction = "pause"
	ActionResume   FaultAction = "resume"
	ActionPowerOff FaultAction = "power-off"
	ActionPowerOn  FaultAction = "power-on"
	ActionCut      FaultAction = "cut"
	ActionRestore  FaultAction = "restore"
	ActionHeal     FaultAction = "heal"
)

type faultRequest struct {
	Action FaultAction `json:"action"`
	Target string      `json:"target"`
}

type controlServer struct {
	cluster *Cluster
	server  *http.Server
	stop    chan struct{} // receives a value per POST /stop
}

func serveControl(c *Cluster) (*controlServer, error) {
	listener, err := net.Listen("unix", c.folder.file(controlSocket))
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	s := &controlServer{cluster: c, stop: make(chan struct{}, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /info", s.info)
	mux.HandleFunc("POST /fault", s.fault)
	mux.HandleFunc("POST /stop", s.requestStop)
	s.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.server.Serve(listener) }() // ends with close
	return s, nil
}

func (s *controlServer) close() { _ = s.server.Close() }

func (c *Cluster) StopRequested() <-chan struct{} { return c.control.stop }

func (c *Cluster) Info() Info {
	info := Info{
		Name: c.folder.name(), Dir: c.Dir(), Kubeconfig: c.Kubeconfig(), DiskURL: c.DiskURL(),
		Shape: c.Shape(), Processes: c.Processes(),
	}
	for name, l := range c.site.links {
		if !l.Whole() {
			info.Cut = append(info.Cut, name)
		}
	}
	slices.Sort(info.Cut)
	return info
}

func (c *Cluster) Do(ctx context.Context, action FaultAction, target string) error {
	switch action {
	case ActionKill:
		return c.Kill(ctx, target)
	case ActionStart:
		return c.StartAgain(target)
	case ActionPause:
		return c.Pause(target)
	case ActionResume:
		return c.Resume(target)
	case ActionPowerOff:
		return c.PowerOff(ctx, target)
	case ActionPowerOn:
		return c.PowerOn(ctx, target)
	case ActionCut:
		return c.Cut(target)
	case ActionRestore:
		return c.Restore(target)
	case ActionHeal:
		return c.Heal(ctx)
	}
	return fmt.Errorf("unknown fault %q", action)
}

func (s *controlServer) info(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s.cluster.Info()) // the client has gone
}

func (s *controlServer) fault(w http.ResponseWriter, r *http.Request) {
	var req faultRequest
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&req); err != nil {
		http.Error(w, "fault request: "+err.Error(), http.StatusBadRequest)
		return
	}
	err := s.cluster.Do(r.Context(), req.Action, req.Target)
	switch {
	case errors.Is(err, supervise.ErrUnknown):
		http.Error(w, fmt.Sprintf("%v: there are %v", err, s.cluster.Components()), http.StatusNotFound)
	case err != nil:
		http.Error(w, err.Error(), http.StatusConflict)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

func (s *controlServer) requestStop(w http.ResponseWriter, _ *http.Request) {
	select {
	case s.stop <- struct{}{}:
	default: // asked already
	}
	w.WriteHeader(http.StatusAccepted)
}
