// SPDX-License-Identifier: Apache-2.0

package block

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// Disks are safe for parallel use.
type Disks struct {
	folder string

	mu   sync.Mutex
	open map[place]*os.File // devices
	off  map[string]bool    // nodes without power
}

type place struct{ node, volume string }

func Open(folder string) (*Disks, error) {
	if err := Check(); err != nil {
		return nil, err
	}
	for _, dir := range []string{"files", "snapshots", "at"} {
		if err := os.MkdirAll(filepath.Join(folder, dir), 0o755); err != nil {
			return nil, fmt.Errorf("folder of the disks: %w", err)
		}
	}
	return &Disks{folder: folder, open: map[place]*os.File{}, off: map[string]bool{}}, nil
}

func Device(folder, node, volume string) string { return filepath.Join(folder, "at", node, volume) }

func File(folder, volume string) string { return filepath.Join(folder, "files", volume) }

func Node(folder, node string) string { return filepath.Join(folder, "at", node) }

func (d *Disks) snapshot(handle string) string { return filepath.Join(d.folder, "snapshots", handle) }

func (d *Disks) link(p place) string { return Device(d.folder, p.node, p.volume) + ".disk" }

// Carry does an operation before the disk service applies it. It may be repeated.
func (d *Disks) Carry(e diskapi.Entry) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch e.Call {
	case diskapi.CreateVolume:
		return d.create(e)
	case diskapi.DeleteVolume:
		return remove(File(d.folder, e.Volume))
	case diskapi.ControllerPublish:
		return d.attach(place{e.Node, e.Volume}, e.ReadOnly)
	case diskapi.ControllerUnpublish:
		return d.detach(place{e.Node, e.Volume})
	case diskapi.ControllerExpand:
		return d.expand(e.Volume, e.SizeBytes)
	case diskapi.CreateSnapshot:
		return copySparse(File(d.folder, e.Volume), d.snapshot(e.Snapshot))
	case diskapi.CreateGroupSnapshot:
		for _, p := range e.Parts {
			if err := copySparse(File(d.folder, p.Volume), d.snapshot(p.Handle)); err != nil {
				return err
			}
		}
	case diskapi.DeleteSnapshot:
		return remove(d.snapshot(e.Snapshot))
	}
	return nil
}

func (d *Disks) Power(node string, on bool, attached []diskapi.Attachment) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.off[node] = !on
	var errs []error
	for _, a := range attached {
		p := place{node, a.Volume}
		if on {
			errs = append(errs, d.attach(p, a.ReadOnly))
		} else {
			errs = append(errs, d.detach(p))
		}
	}
	return errors.Join(errs...)
}

// The kernel frees a device after its last user.
func (d *Disks) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for p, device := range d.open {
		errs = append(errs, device.Close())
		delete(d.open, p)
	}
	return errors.Join(errs...)
}

func (d *Disks) create(e diskapi.Entry) error {
	file := File(d.folder, e.Volume)
	switch {
	case e.Snapshot != "":
		if err := copySparse(d.snapshot(e.Snapshot), file); err != nil {
			return err
		}
	case e.Source != "":
		if err := copySparse(File(d.folder, e.Source), file); err != nil {
			return err
		}
	}
	return enlarge(file, e.SizeBytes)
}

// attach takes over a device of an earlier process: a file system may be mounted from it.
func (d *Disks) attach(p place, readOnly bool) error {
	if d.off[p.node] || d.open[p] != nil {
		return nil
	}
	link := d.link(p)
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		return fmt.Errorf("folder of a node's disks: %w", err)
	}
	device, err := d.left(link)
	if err == nil && device == nil {
		// A link that is left may be to a file that Cut has replaced.
		if err := errors.Join(remove(link), os.Link(File(d.folder, p.volume), link)); err != nil {
			return fmt.Errorf("disk %s: %w", p.volume, err)
		}
		device, err = attach(link, readOnly)
	}
	if err != nil {
		return fmt.Errorf("disk %s: %w", p.volume, err)
	}
	d.open[p] = device
	name := Device(d.folder, p.node, p.volume)
	if err := errors.Join(remove(name), os.Symlink(device.Name(), name)); err != nil {
		return fmt.Errorf("disk %s: %w", p.volume, err)
	}
	return nil
}

func (d *Disks) left(file string) (*os.File, error) {
	list, err := Loops(filepath.Dir(file))
	for _, loop := range list {
		if loop.File == file && !loop.Unlinked {
			return os.OpenFile(loop.Device, os.O_RDWR, 0)
		}
	}
	return nil, err
}

// A mounted device stays until it is unmounted.
func (d *Disks) detach(p place) error {
	err := errors.Join(remove(Device(d.folder, p.node, p.volume)), remove(d.link(p)))
	if device := d.open[p]; device != nil {
		delete(d.open, p)
		err = errors.Join(err, device.Close()) // it frees itself
	}
	if err != nil {
		return fmt.Errorf("disk %s: %w", p.volume, err)
	}
	return nil
}

func (d *Disks) expand(volume string, size int64) error {
	if err := enlarge(File(d.folder, volume), size); err != nil {
		return err
	}
	for p, device := range d.open {
		if p.volume == volume {
			if err := grow(device); err != nil {
				return err
			}
		}
	}
	return nil
}

// Cut cuts a node's devices off from its disks: its kernel writes to files of their own from now on. The
// node gets a disk back by a detach and a new attach.
func Cut(folder, node string) error {
	links, err := filepath.Glob(filepath.Join(Node(folder, node), "*.disk"))
	if err != nil {
		return err
	}
	for _, link := range links {
		file := File(folder, strings.TrimSuffix(filepath.Base(link), ".disk"))
		if err := copySparse(link, file+".cut"); err != nil {
			return err
		}
		if err := os.Rename(file+".cut", file); err != nil {
			return fmt.Errorf("disk without node %s: %w", node, err)
		}
	}
	return nil
}

// The file takes no space for that.
func enlarge(file string, size int64) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("file of a disk: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && info.Size() < size {
		err = f.Truncate(size)
	}
	if err != nil {
		return fmt.Errorf("file of a disk: %w", err)
	}
	return nil
}

func copySparse(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("copy of a disk: %w", err)
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return fmt.Errorf("copy of a disk: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	info, err := in.Stat()
	if err != nil {
		return fmt.Errorf("copy of a disk: %w", err)
	}
	for at := int64(0); at < info.Size(); {
		begin, err := in.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break // nothing but a hole is left
		} else if err != nil {
			return fmt.Errorf("copy of a disk: %w", err)
		}
		if at, err = in.Seek(begin, unix.SEEK_HOLE); err != nil {
			return fmt.Errorf("copy of a disk: %w", err)
		}
		if _, err := io.Copy(io.NewOffsetWriter(out, begin), io.NewSectionReader(in, begin, at-begin)); err != nil {
			return fmt.Errorf("copy of a disk: %w", err)
		}
	}
	if err := out.Truncate(info.Size()); err != nil {
		return fmt.Errorf("copy of a disk: %w", err)
	}
	return nil
}

func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
