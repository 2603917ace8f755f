// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// Cloneflags has no network: the process makes it itself, since it serves at the host's network too.
const Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC

type options struct {
	name    string
	socket  string
	address string
	forward []string
	expose  []string
}

func NewCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "machine",
		Short: "Hold the namespaces of a node's machine",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.name, "name", "", "host name of the machine")
	flags.StringVar(&o.socket, "socket", "", "unix socket at which others join")
	flags.StringVar(&o.address, "address", "", "IPv4 address that the machine has")
	flags.StringArrayVar(&o.expose, "expose", nil, "address of the machine, with its port, that is reached at the same address of the host")
	flags.StringArrayVar(&o.forward, "forward", nil, "address of the host, with its port, that is reached at the same address inside")
	return cmd
}

func (o options) run(ctx context.Context) error {
	if os.Getpid() != 1 {
		return errors.New("a machine is the first process of its namespaces: start it with those")
	}
	// An orphan becomes a child of the first process. If the parent ignores a child's end, the kernel keeps
	// nothing of it.
	signal.Ignore(unix.SIGCHLD)
	if err := o.mounts(); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(o.name)); err != nil {
		return fmt.Errorf("host name of the machine: %w", err)
	}
	inside, err := newNetwork(o.address)
	if err != nil {
		return fmt.Errorf("network of the machine: %w", err)
	}
	defer inside.file.Close()
	for _, address := range o.forward {
		l, err := inside.listen(address)
		if err != nil {
			return fmt.Errorf("network of the machine: %w", err)
		}
		go forward(ctx, l, address, dial)
	}
	for _, address := range o.expose {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return fmt.Errorf("network of the machine: %w", err)
		}
		go forward(ctx, l, address, inside.dial)
	}
	return o.serve(ctx, inside.file)
}

// Hidden are the host's folders that a machine sees as empty, since kubelet, container runtime and CNI
// plugins write to fixed paths there.
func Hidden() []string { return []string{"/run", "/var/lib", "/var/log"} }

// Machine and host do not see each other's later mounts. Containers see the machine's mounts if their pods
// ask for mount propagation.
func (o options) mounts() error {
	type step struct {
		source, target, kind string
		flags                uintptr
	}
	steps := []step{
		{"", "/", "", unix.MS_REC | unix.MS_PRIVATE},
		{"", "/", "", unix.MS_REC | unix.MS_SHARED},
		{"proc", "/proc", "proc", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
	}
	for _, path := range Hidden() {
		steps = append(steps, step{"machine", path, "tmpfs", unix.MS_NOSUID | unix.MS_NODEV})
	}
	for _, s := range steps {
		if err := unix.Mount(s.source, s.target, s.kind, s.flags, ""); err != nil {
			return fmt.Errorf("mounts of the machine: %s: %w", s.target, err)
		}
	}
	return nil
}

var kinds = []string{"uts", "ipc", "net", "pid", "mnt"}

var flagOf = map[string]int{
	"uts": unix.CLONE_NEWUTS, "ipc": unix.CLONE_NEWIPC, "net": unix.CLONE_NEWNET, "pid": unix.CLONE_NEWPID, "mnt": unix.CLONE_NEWNS,
}

func (o options) serve(ctx context.Context, network *os.File) error {
	var files []*os.File
	for _, kind := range kinds {
		f := network
		if kind != "net" {
			var err error
			if f, err = os.Open("/proc/self/ns/" + kind); err != nil {
				return fmt.Errorf("namespaces of the machine: %w", err)
			}
			defer f.Close()
		}
		files = append(files, f)
	}
	if err := os.Remove(o.socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("socket of the machine: %w", err)
	}
	l, err := net.Listen("unix", o.socket)
	if err != nil {
		return fmt.Errorf("socket of the machine: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = l.Close() })
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		} else if err != nil {
			return fmt.Errorf("socket of the machine: %w", err)
		}
		var fds []int
		for _, f := range files {
			fds = append(fds, int(f.Fd()))
		}
		_, _, _ = conn.(*net.UnixConn).WriteMsgUnix([]byte{0}, unix.UnixRights(fds...), nil) // a process that does not get them says so
		_ = conn.Close()
		runtime.KeepAlive(files)
	}
}
