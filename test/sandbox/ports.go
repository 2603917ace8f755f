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
	// firstPort and lastPort lie below Linux' default range of ephemeral
	// ports, so that no outgoing connection takes a port between the moment
	// we choose it and the moment a component listens on it.
	firstPort = 11000
	lastPort  = 32000
	// portAttempts bounds the search; a free port is found at once unless
	// something is badly wrong.
	portAttempts = 200
)

// ports hands out free loopback ports, each to one cluster at a time: a port has no listener until its
// component has started, nor while that is killed, and another cluster that starts then must not choose
// it. A port is a cluster's for as long as an abstract unix socket is named after it: such names are
// the network namespace's, as ports are, and go with the process, however it ends.
type ports struct {
	held []net.Listener
}

// next returns a loopback address without a listener, for the caller only.
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

// close gives the ports back.
func (p *ports) close() {
	for _, hold := range p.held {
		_ = hold.Close() // nothing is lost with it
	}
}

// portOf returns the port of a host:port address.
func portOf(addr string) (string, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("address %q: %w", addr, err)
	}
	return port, nil
}
