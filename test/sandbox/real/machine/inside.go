// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

const joinTimeout = time.Minute

const joinAgain = 20 * time.Millisecond

func NewInsideCommand() *cobra.Command {
	var socket string
	cmd := &cobra.Command{
		Use:   "inside",
		Short: "Run a program inside a node's machine",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), joinTimeout)
			defer cancel()
			return run(ctx, socket, args)
		},
	}
	cmd.Flags().StringVar(&socket, "socket", "", "unix socket of the machine")
	cmd.Flags().SetInterspersed(false)
	return cmd
}

func run(ctx context.Context, socket string, args []string) error {
	namespaces, err := ask(ctx, socket)
	if err != nil {
		return fmt.Errorf("join the machine: %w", err)
	}
	started := make(chan error, 1)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// A signal that kills this process group kills the child too. It gets no death signal of its own: a
	// child in other namespaces takes its parent for dead.
	go func() {
		runtime.LockOSThread() // never unlocked: the thread, which is elsewhere, ends here
		err := enter(namespaces)
		if err == nil {
			err = cmd.Start()
		}
		started <- err
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start %s inside the machine: %w", args[0], err)
	}
	var exit *exec.ExitError
	switch err := cmd.Wait(); {
	case err == nil:
		return nil
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		os.Exit(exit.ExitCode())
		return nil
	default:
		return fmt.Errorf("%s: %w", args[0], err)
	}
}

func ask(ctx context.Context, socket string) ([]*os.File, error) {
	for {
		files, err := receive(ctx, socket)
		if err == nil {
			return files, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(joinAgain):
		}
	}
}

func receive(ctx context.Context, socket string) ([]*os.File, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	buffer := make([]byte, unix.CmsgSpace(len(kinds)*4))
	_, n, _, _, err := conn.(*net.UnixConn).ReadMsgUnix(make([]byte, 1), buffer)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(buffer[:n])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(err, fmt.Errorf("%d messages from the machine", len(messages)))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != len(kinds) {
		return nil, errors.Join(err, fmt.Errorf("%d namespaces of the machine", len(fds)))
	}
	var files []*os.File
	for i, fd := range fds {
		unix.CloseOnExec(fd)
		files = append(files, os.NewFile(uintptr(fd), kinds[i]))
	}
	return files, nil
}

func enter(namespaces []*os.File) error {
	// A thread can have mounts of its own only if it shares its folders with no other.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return err
	}
	for i, f := range namespaces {
		if err := unix.Setns(int(f.Fd()), flagOf[kinds[i]]); err != nil {
			return fmt.Errorf("namespace %s: %w", kinds[i], err)
		}
	}
	return nil
}
