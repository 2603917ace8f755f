// SPDX-License-Identifier: Apache-2.0

package block

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const loopControl = "/dev/loop-control"

// Another process may be faster in taking a free loop device.
const tries = 100

func Check() error {
	f, err := os.OpenFile(loopControl, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("loop devices are needed for real disks: %w", err)
	}
	return f.Close()
}

// The kernel frees the open device after its last user.
func attach(file string, readOnly bool) (*os.File, error) {
	control, err := os.OpenFile(loopControl, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("loop devices: %w", err)
	}
	defer control.Close()
	mode, flags := os.O_RDWR, uint32(unix.LO_FLAGS_AUTOCLEAR)
	if readOnly {
		mode, flags = os.O_RDONLY, flags|unix.LO_FLAGS_READ_ONLY
	}
	backing, err := os.OpenFile(file, mode, 0)
	if err != nil {
		return nil, fmt.Errorf("file of the disk: %w", err)
	}
	defer backing.Close()
	for range tries {
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("free loop device: %w", err)
		}
		device, err := os.OpenFile("/dev/loop"+strconv.Itoa(number), os.O_RDWR, 0)
		if err != nil {
			return nil, fmt.Errorf("loop device: %w", err)
		}
		config := unix.LoopConfig{Fd: uint32(backing.Fd()), Info: unix.LoopInfo64{Flags: flags}}
		if err = unix.IoctlLoopConfigure(int(device.Fd()), &config); err == nil {
			return device, nil
		}
		_ = device.Close()
		if !errors.Is(err, unix.EBUSY) {
			return nil, fmt.Errorf("loop device %s: %w", device.Name(), err)
		}
	}
	return nil, fmt.Errorf("%d loop devices were taken by others", tries)
}

func grow(device *os.File) error {
	if err := unix.IoctlSetInt(int(device.Fd()), unix.LOOP_SET_CAPACITY, 0); err != nil {
		return fmt.Errorf("capacity of %s: %w", device.Name(), err)
	}
	return nil
}

type Loop struct {
	Device, File string
	// Unlinked says that the file has lost that name.
	Unlinked bool
}

// Loops lists the devices over files below a folder, after devices over these: a kubelet makes a device
// over a block volume's.
func Loops(folder string) ([]Loop, error) {
	all, err := loops()
	if err != nil {
		return nil, err
	}
	var mine, others []Loop
	for _, loop := range all {
		if strings.HasPrefix(loop.File, folder+"/") {
			mine = append(mine, loop)
		} else {
			others = append(others, loop)
		}
	}
	var list []Loop
	for _, other := range others {
		for _, loop := range mine {
			if over(other.Device, loop.Device) {
				other.File = loop.Device
				list = append(list, other)
			}
		}
	}
	return append(list, mine...), nil
}

func loops() ([]Loop, error) {
	paths, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return nil, err
	}
	var list []Loop
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENODEV) {
			continue // it was freed meanwhile
		} else if err != nil {
			return nil, fmt.Errorf("loop devices: %w", err)
		}
		file, unlinked := strings.CutSuffix(strings.TrimSpace(string(data)), " (deleted)")
		list = append(list, Loop{Device: "/dev/" + filepath.Base(filepath.Dir(filepath.Dir(path))), File: file, Unlinked: unlinked})
	}
	return list, nil
}

// The kernel does not say so by a path: the file is mounted in a machine.
func over(device, below string) bool {
	f, err := os.Open(device)
	if err != nil {
		return false // it was freed
	}
	defer f.Close()
	status, err := unix.IoctlLoopGetStatus64(int(f.Fd()))
	if err != nil {
		return false
	}
	var info unix.Stat_t
	return unix.Stat(below, &info) == nil && status.Rdevice == info.Rdev
}

// Free leaves a mounted device until it is unmounted.
func Free(folder string) error {
	list, err := Loops(folder)
	if err != nil {
		return err
	}
	var errs []error
	for _, loop := range list {
		f, err := os.OpenFile(loop.Device, os.O_RDWR, 0)
		if err != nil {
			errs = append(errs, fmt.Errorf("loop device: %w", err))
			continue
		}
		err = unix.IoctlSetInt(int(f.Fd()), unix.LOOP_CLR_FD, 0)
		if err != nil && !errors.Is(err, unix.ENXIO) {
			errs = append(errs, fmt.Errorf("free %s: %w", loop.Device, err))
		}
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}
