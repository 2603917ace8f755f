// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"
)

const (
	// The chart has two probes with this interval.
	probeEvery = 10 * time.Second
	// The chart's ServiceMonitor scrapes at each third probe tick.
	scrapeEvery = 3
)

type process struct {
	cmd    *exec.Cmd
	listen string
	ended  chan error
}

func startProcess(m *mounts, binary, kubeconfig, root, log string) (*process, error) {
	listen, err := freeAddress()
	if err != nil {
		return nil, err
	}
	out, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("log of moorage-node: %w", err)
	}
	defer out.Close()
	p := &process{listen: listen, ended: make(chan error, 1)}
	p.cmd = exec.Command(binary, "--kubelet-root="+root, "--listen="+listen, "--kubeconfig="+kubeconfig)
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := m.in(p.cmd.Start); err != nil {
		return nil, fmt.Errorf("start moorage-node: %w", err)
	}
	go func() { p.ended <- p.cmd.Wait() }()
	return p, nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("a port for moorage-node: %w", err)
	}
	return l.Addr().String(), l.Close()
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end moorage-node: %w", err)
	}
	select {
	case err := <-p.ended:
		if err != nil {
			return fmt.Errorf("moorage-node ended: %w", err)
		}
		return nil
	case <-time.After(time.Minute):
		return errors.Join(errors.New("moorage-node does not end"), p.cmd.Process.Kill())
	}
}

func (p *process) rests(ctx context.Context, rest time.Duration) error {
	over := time.NewTimer(rest)
	defer over.Stop()
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-over.C:
			return nil
		case <-tick.C:
		}
		paths := []string{"/healthz", "/healthz"}
		if n%scrapeEvery == 0 {
			paths = append(paths, "/metrics")
		}
		for _, path := range paths {
			if err := p.get(ctx, path); err != nil {
				return err
			}
		}
	}
}

// As a kubelet: a connection per request.
func (p *process) get(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, probeEvery)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.listen+path, http.NoBody)
	if err != nil {
		return err
	}
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("probe moorage-node: %w", err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return fmt.Errorf("probe moorage-node: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("moorage-node answers %s with %s", path, response.Status)
	}
	return nil
}
