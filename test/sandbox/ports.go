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

// ports hands out free loopback ports, each once.
type ports struct {
	given map[int]bool
}

// next returns a loopback address nobody listens on.
func (p *ports) next() (string, error) {
	if p.given == nil {
		p.given = map[int]bool{}
	}
	for range portAttempts {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if p.given[port] {
			continue
		}
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		l, err := net.Listen("tcp", addr)
		if err != nil {
			continue
		}
		l.Close()
		p.given[port] = true
		return addr, nil
	}
	return "", errors.New("no free loopback port found between " + strconv.Itoa(firstPort) + " and " + strconv.Itoa(lastPort) + ": is the loopback interface up?")
}

// portOf returns the port of a host:port address.
func portOf(addr string) (string, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", fmt.Errorf("address %q: %w", addr, err)
	}
	return port, nil
}
