// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// watchMounts signals at its begin, and at each change of the mount table: an open mountinfo then has
// POLLERR and POLLPRI (proc(5)). The kernel reports a change only to the first reader: package os does not
// open the file, since Go's netpoller would read as well.
func watchMounts(ctx context.Context, table string, changed chan struct{}) error {
	file, err := unix.Open(table, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", table, err)
	}
	defer unix.Close(file)
	signal(changed)
	// A write into the pipe ends the wait.
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return fmt.Errorf("make a pipe: %w", err)
	}
	defer unix.Close(pipe[0])
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		_ = unix.Close(pipe[1]) // the other end hangs up
	})
	defer func() {
		if stop() {
			_ = unix.Close(pipe[1])
		} else {
			<-ended
		}
	}()
	waits := []unix.PollFd{{Fd: int32(file), Events: unix.POLLPRI}, {Fd: int32(pipe[0])}}
	for {
		if _, err := unix.Poll(waits, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for %s to change: %w", table, err)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case waits[0].Revents&unix.POLLNVAL != 0:
			return fmt.Errorf("%s can't be waited for", table)
		case waits[0].Revents != 0:
			signal(changed)
		}
	}
}
