// SPDX-License-Identifier: Apache-2.0

// Package link is the network between a component and the API server: a TCP proxy that can be cut. It
// decides nothing.
package link

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"
)

// Link forwards connections. While it is cut, connections stay open, new ones are accepted, and nothing
// passes. Its methods are safe for parallel use.
type Link struct {
	listener net.Listener
	target   string

	mu      sync.Mutex
	conns   map[net.Conn]struct{}
	whole   chan struct{} // closed while the link is whole
	isWhole bool
	closed  bool
}

func Open(addr, target string) (*Link, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("link to %s: %w", target, err)
	}
	l := &Link{listener: listener, target: target, conns: map[net.Conn]struct{}{}, whole: make(chan struct{}), isWhole: true}
	close(l.whole)
	go l.accept()
	return l, nil
}

func (l *Link) Addr() string { return l.listener.Addr().String() }

func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isWhole || l.closed {
		return
	}
	l.isWhole, l.whole = false, make(chan struct{})
	for c := range l.conns {
		_ = c.SetReadDeadline(time.Unix(1, 0)) // wakes up its reader
	}
}

func (l *Link) Restore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isWhole || l.closed {
		return
	}
	for c := range l.conns {
		_ = c.SetReadDeadline(time.Time{})
	}
	l.isWhole = true
	close(l.whole)
}

func (l *Link) Whole() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.isWhole
}

func (l *Link) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	if !l.isWhole {
		close(l.whole)
	}
	for c := range l.conns {
		c.Close()
	}
	return l.listener.Close()
}

func (l *Link) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		go l.forward(client)
	}
}

func (l *Link) forward(client net.Conn) {
	if !l.track(client) {
		return
	}
	defer l.untrack(client)
	l.awaitWhole()
	server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", l.target)
	if err != nil {
		return
	}
	if !l.track(server) {
		return
	}
	defer l.untrack(server)
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.copy(server, client)
	}()
	l.copy(client, server)
	<-done
}

// Bytes that a pending read brings after a cut wait, too.
func (l *Link) copy(dst, src net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := src.Read(buffer)
		l.awaitWhole()
		if n > 0 {
			if _, err := dst.Write(buffer[:n]); err != nil {
				break
			}
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
	}
	if half, ok := dst.(*net.TCPConn); ok {
		_ = half.CloseWrite()
	}
	if half, ok := src.(*net.TCPConn); ok {
		_ = half.CloseRead()
	}
}

func (l *Link) awaitWhole() {
	l.mu.Lock()
	whole := l.whole
	l.mu.Unlock()
	<-whole
}

func (l *Link) track(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		c.Close()
		return false
	}
	l.conns[c] = struct{}{}
	if !l.isWhole {
		_ = c.SetReadDeadline(time.Unix(1, 0))
	}
	return true
}

func (l *Link) untrack(c net.Conn) {
	l.mu.Lock()
	delete(l.conns, c)
	l.mu.Unlock()
	c.Close()
}
