// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moorage-dev/moorage/internal/serving"
)

type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, open := <-p
	if !open {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

type from struct {
	net.Conn
	ip string
}

func (f from) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(f.ip), Port: 9} }

func (p pipes) dial(ip string) net.Conn {
	client, server := net.Pipe()
	p <- from{server, ip}
	return client
}

func begin(t *testing.T, c net.Conn, size int, body []byte) {
	t.Helper()
	if _, err := fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: w\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", pathMutatePod, size); err != nil {
		t.Error(err)
	}
	if _, err := c.Write(body); err != nil {
		t.Error(err)
	}
}

func answered(c net.Conn) (int, error) {
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

func serve(t *testing.T) (server *Server, listener pipes, end func()) {
	t.Helper()
	server, listener = newServer(t), make(pipes)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- serving.Server{Handler: server.Handler(), ReadTimeout: readTimeout, WriteTimeout: writeTimeout}.Serve(ctx, listener)
	}()
	return server, listener, func() {
		cancel()
		synctest.Wait()
		close(listener)
		<-ended
	}
}

// Clients that announce large bodies, and send none, fill the room. The API server's requests get through:
// the largest holders are cut off first.
func TestSlowClientsDoNotKeepOthersOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, listener, end := serve(t)
		const flood, modest = "192.0.2.1", "192.0.2.2"
		codes := make(chan int, 4)
		slow := func(ip string, size int) {
			c := listener.dial(ip)
			begin(t, c, size, []byte("{"))
			go func() {
				code, _ := answered(c)
				c.Close()
				codes <- code
			}()
			synctest.Wait()
		}
		slow(modest, maxBodyBytes)
		for range maxBodiesBytes/maxBodyBytes - 1 {
			slow(flood, maxBodyBytes)
		}
		if server.bodies.free != 0 {
			t.Fatalf("%d bytes are free", server.bodies.free)
		}
		before := time.Now()
		body := review(t, rawPod, nil)
		for range 20 {
			c := listener.dial("198.51.100.1")
			go begin(t, c, len(body), body)
			if code, err := answered(c); code != http.StatusOK {
				t.Fatalf("the API server is answered %d (%v)", code, err)
			}
			c.Close()
		}
		if took := time.Since(before); took >= readTimeout {
			t.Errorf("it took %s, by which time the slow ones have gone by themselves", took)
		}
		if code := <-codes; code != http.StatusServiceUnavailable || len(codes) > 0 {
			t.Errorf("a slow client is answered %d, and %d more are cut off", code, len(codes))
		}
		if held := server.bodies.held; held[modest] != maxBodyBytes || held[flood] != 2*maxBodyBytes {
			t.Errorf("then %v are held: the one that holds the most was to be cut off", held)
		}
		for range 3 {
			<-codes
		}
		synctest.Wait()
		if server.bodies.free != maxBodiesBytes {
			t.Errorf("when all have gone, %d bytes are missing", maxBodiesBytes-server.bodies.free)
		}
		end()
	})
}

func TestSlowClientsAreNotCutOffForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, listener, end := serve(t)
		body := review(t, rawPod, nil)
		c := listener.dial("192.0.2.1")
		begin(t, c, len(body), body[:10])
		time.Sleep(readTimeout / 2) // by the bubble's own clock
		go func() { _, _ = io.Copy(c, bytes.NewReader(body[10:])) }()
		if code, err := answered(c); code != http.StatusOK {
			t.Errorf("answered %d (%v)", code, err)
		}
		c.Close()
		end()
	})
}

// Small requests come before requests of clients that hold much, in any order of arrival.
func TestRoomLetsInWhoHoldsLeast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(10)
		guests := map[string]*guest{}
		enter := func(client string, size int64) {
			g := &guest{client: client, size: size, cut: func() {}}
			guests[fmt.Sprint(client, size)] = g
			go func() { _ = r.enter(t.Context(), g) }()
			synctest.Wait()
		}
		inside := func(want string) {
			t.Helper()
			synctest.Wait()
			var got []string
			for _, g := range r.inside {
				got = append(got, fmt.Sprint(g.client, g.size))
			}
			if fmt.Sprint(got) != want {
				t.Errorf("inside are %v, want %s", got, want)
			}
		}
		enter("a", 6)
		enter("a", 4)
		enter("a", 1)
		enter("b", 5)
		enter("c", 2)
		inside("[a6 a4]")
		r.leave(guests["a6"])
		inside("[a4 c2 a1]")
		r.leave(guests["a4"])
		inside("[c2 a1 b5]")
		for _, g := range []string{"c2", "a1", "b5"} {
			r.leave(guests[g])
		}
		inside("[]")
		if r.free != 10 || len(r.held)+len(r.waiting) > 0 {
			t.Errorf("at the end %d are free, %v are held, %d wait", r.free, r.held, len(r.waiting))
		}
	})
}
