// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// network is a network namespace. A thread of the process is in it, and opens its sockets.
type network struct {
	file *os.File
	work chan func()
}

func newNetwork(address string) (*network, error) {
	n := &network{work: make(chan func())}
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread is elsewhere
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			n.file, err = os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
		}
		if err == nil {
			err = configureLoopback(address)
		}
		made <- err
		for do := range n.work {
			do()
		}
	}()
	return n, <-made
}

func (n *network) do(f func()) {
	done := make(chan struct{})
	n.work <- func() { defer close(done); f() }
	<-done
}

func (n *network) listen(address string) (l net.Listener, err error) {
	n.do(func() { l, err = net.Listen("tcp", address) })
	return l, err
}

func (n *network) dial(ctx context.Context, address string) (c net.Conn, err error) {
	n.do(func() { c, err = dial(ctx, address) })
	return c, err
}

func dial(ctx context.Context, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address)
}

func configureLoopback(address string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("loopback device: %w", err)
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return fmt.Errorf("loopback device: %w", err)
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request); err != nil {
		return fmt.Errorf("loopback device: %w", err)
	}
	if address == "" {
		return nil
	}
	if request, err = unix.NewIfreq("lo:1"); err != nil {
		return fmt.Errorf("loopback device: %w", err)
	}
	if err := request.SetInet4Addr(net.ParseIP(address).To4()); err != nil {
		return fmt.Errorf("address %q of the machine: %w", address, err)
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFADDR, request); err != nil {
		return fmt.Errorf("address %s of the machine: %w", address, err)
	}
	return nil
}

func forward(ctx context.Context, l net.Listener, address string, dial func(context.Context, string) (net.Conn, error)) {
	for {
		near, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		} else if err != nil {
			continue
		}
		go func() {
			defer near.Close()
			far, err := dial(ctx, address)
			if err != nil {
				return // refused on both sides
			}
			defer far.Close()
			join(near.(*net.TCPConn), far.(*net.TCPConn))
		}()
	}
}

func join(a, b *net.TCPConn) {
	var both sync.WaitGroup
	for _, way := range [][2]*net.TCPConn{{a, b}, {b, a}} {
		both.Go(func() {
			_, err := io.Copy(way[0], way[1])
			if err != nil {
				_ = way[1].Close()
			}
			_ = way[0].CloseWrite()
		})
	}
	both.Wait()
}
