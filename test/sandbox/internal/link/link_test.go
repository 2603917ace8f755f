// SPDX-License-Identifier: Apache-2.0

package link

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"
)

func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for lines := bufio.NewScanner(c); lines.Scan(); {
					fmt.Fprintln(c, lines.Text())
				}
			}()
		}
	}()
	return l.Addr().String()
}

func open(t *testing.T) *Link {
	t.Helper()
	l, err := Open("127.0.0.1:0", echo(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func dial(t *testing.T, l *Link) (net.Conn, *bufio.Reader) {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, bufio.NewReader(c)
}

func say(t *testing.T, c net.Conn, line string) {
	t.Helper()
	if _, err := fmt.Fprintln(c, line); err != nil {
		t.Fatal(err)
	}
}

func hear(t *testing.T, r *bufio.Reader, want string) {
	t.Helper()
	got, err := r.ReadString('\n')
	if err != nil || got != want+"\n" {
		t.Fatalf("heard %q, %v; want %q", got, err, want)
	}
}

func TestCutHoldsBytesBackAndRestoreDeliversThem(t *testing.T) {
	l := open(t)
	c, r := dial(t, l)
	say(t, c, "one")
	hear(t, r, "one")

	l.Cut()
	say(t, c, "two")
	late, lateReader := dial(t, l) // a connection made while the link is cut
	say(t, late, "three")
	for _, conn := range []net.Conn{c, late} {
		if err := conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if n, err := conn.Read(make([]byte, 8)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("read %d bytes through a cut link, error %v", n, err)
		}
		if err := conn.SetReadDeadline(time.Time{}); err != nil {
			t.Fatal(err)
		}
	}

	l.Restore()
	hear(t, r, "two")
	hear(t, lateReader, "three")
	say(t, c, "four")
	hear(t, r, "four")
}

func TestCloseEndsConnectionsOfACutLink(t *testing.T) {
	l := open(t)
	c, r := dial(t, l)
	say(t, c, "one")
	hear(t, r, "one")
	l.Cut()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReadByte(); err == nil {
		t.Fatal("the connection survives its link")
	}
}
