// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// The measured process starts in this mount namespace. For serial use.
type mounts struct {
	do chan func()
}

// It ends with its thread and the thread's processes.
func newMounts() (*mounts, error) {
	m := &mounts{do: make(chan func())}
	made := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this function
		err := unix.Unshare(unix.CLONE_NEWNS)
		if err == nil {
			err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		}
		made <- err
		for f := range m.do {
			f()
		}
	}()
	if err := <-made; err != nil {
		m.close()
		return nil, fmt.Errorf("a mount namespace of its own, which takes root: %w", err)
	}
	return m, nil
}

func (m *mounts) close() { close(m.do) }

func (m *mounts) in(f func() error) error {
	result := make(chan error)
	m.do <- func() { result <- f() }
	return <-result
}

// Like a container's mount of the kubelet's folder.
func (m *mounts) share(folder string) error {
	return m.in(func() error {
		err := unix.Mount(folder, folder, "", unix.MS_BIND, "")
		if err == nil {
			err = unix.Mount("", folder, "", unix.MS_SHARED, "")
		}
		return mountError(folder, err)
	})
}

func (m *mounts) tmpfs(path string) error {
	return m.mountAt(path, func() error { return unix.Mount("disk", path, "tmpfs", 0, "size=64k") })
}

func (m *mounts) bind(from, path string) error {
	return m.mountAt(path, func() error { return unix.Mount(from, path, "", unix.MS_BIND, "") })
}

func (m *mounts) mountAt(path string, mount func() error) error {
	return m.in(func() error {
		err := os.MkdirAll(path, 0o750)
		if err == nil {
			err = mount()
		}
		return mountError(path, err)
	})
}

func (m *mounts) unmount(path string) error {
	return m.in(func() error { return mountError(path, unix.Unmount(path, 0)) })
}

func mountError(path string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("mount or unmount %s: %w", path, err)
}
