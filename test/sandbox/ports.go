// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

const (
	// firstPort and lastPort lie below Linux' ephemeral ports: no outgoing connection takes a chosen port
	// before its component listens.
	firstPort    = 11000
	lastPort     = 32000
	portAttempts = 200
)

// Another cluster must not choose a port whose component is not listening: an abstract unix socket with the
// port's name reserves it, and goes with the process.
type ports struct {
	held []net.Listener
}

func (p *ports) next() (string, error) {
	for range portAttempts {
		port := firstPort + rand.IntN(lastPort-firstPort)
		hold, err := net.Listen("unix", fmt.Sprintf("@moorage-sandbox/port/%d", port))
		if err != nil {
			continue
		}
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		l, err := net.Listen("tcp", addr)
		if err != nil {
			hold.Close()
			continue
		}
		l.Close()
		p.held = append(p.held, hold)
		return addr, nil
	}
	return "", errors.New("no free loopback port found between " + strconv.Itoa(firstPort) + " and " + strconv.Itoa(lastPort) + ": is the loopback interface up?")
}

func (p *ports) close() {
	for _, hold := range p.held {
		_ = hold.Close() // nothing is lost with it
	}
}

func portOf(addr string) (string, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("address %q: %w", addr, err)
	}
	return port, nil
}
