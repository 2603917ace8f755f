// SPDX-License-Identifier: Apache-2.0

package csinode

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"k8s.io/mount-utils"
	"k8s.io/utils/exec"
	"k8s.io/utils/keymutex"

	"github.com/moorage-dev/moorage/test/sandbox/disk/block"
)

// defaultFS is external-provisioner's default.
const defaultFS = "ext4"

// mounts carries calls out for real disks. A call may be repeated. It is safe for parallel use.
type mounts struct {
	mounter *mount.SafeFormatAndMount
	folder  string            // of the disks
	node    string            // CSI ID
	busy    keymutex.KeyMutex // by volume
}

func newMounts(c Config) *mounts {
	return &mounts{
		mounter: mount.NewSafeFormatAndMount(mount.New(""), exec.New()),
		folder:  c.Disks, node: c.nodeID(), busy: keymutex.NewHashed(0),
	}
}

func (m *mounts) lock(volume string) (unlock func()) {
	m.busy.LockKey(volume)
	return func() { _ = m.busy.UnlockKey(volume) } // its error is for implementations that may not have the key
}

func (m *mounts) device(volume string) (string, error) {
	path, err := os.Readlink(block.Device(m.folder, m.node, volume))
	if err != nil {
		return "", fmt.Errorf("no device of volume %s is at node %s: %w", volume, m.node, err)
	}
	return path, nil
}

// stage makes a missing file system, and grows it on a larger disk, such as a copy of a smaller snapshot.
// For a block volume it only looks for the device.
func (m *mounts) stage(r *csi.NodeStageVolumeRequest) error {
	defer m.lock(r.GetVolumeId())()
	device, err := m.device(r.GetVolumeId())
	if err != nil || r.GetVolumeCapability().GetBlock() != nil {
		return err
	}
	at := r.GetStagingTargetPath()
	if err := os.MkdirAll(at, 0o750); err != nil {
		return err
	}
	mounted, err := m.mounter.IsMountPoint(at)
	if err != nil || mounted {
		return err
	}
	wanted := r.GetVolumeCapability().GetMount()
	kind, options := cmp.Or(wanted.GetFsType(), defaultFS), slices.Clone(wanted.GetMountFlags())
	if kind == "xfs" {
		options = append(options, "nouuid") // a restored or cloned disk has the UUID of the original
	}
	switch r.GetVolumeCapability().GetAccessMode().GetMode() {
	case csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY, csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY:
		return m.mounter.FormatAndMount(device, at, kind, append(options, "ro"))
	}
	if err := m.growUnmounted(device); err != nil {
		return err
	}
	if err := m.mounter.FormatAndMount(device, at, kind, options); err != nil || kind != "xfs" {
		return err
	}
	_, err = mount.NewResizeFs(m.mounter.Exec).Resize(device, at)
	return err
}

// A mounted ext4 grows only with CAP_SYS_RESOURCE, which root in a container often lacks.
func (m *mounts) growUnmounted(device string) error {
	kind, err := m.mounter.GetDiskFormat(device)
	if err != nil || kind != "ext4" {
		return err
	}
	if _, err := mount.NewResizeFs(m.mounter.Exec).Resize(device, ""); err == nil {
		return nil
	}
	// It needs a check if it was mounted since the last check.
	out, err := m.mounter.Exec.Command("e2fsck", "-f", "-p", device).CombinedOutput()
	if code, ok := errors.AsType[exec.ExitError](err); err != nil && (!ok || code.ExitStatus() > 1) { // 1: it was mended
		return fmt.Errorf("check of %s: %w: %s", device, err, out)
	}
	_, err = mount.NewResizeFs(m.mounter.Exec).Resize(device, "")
	return err
}

func (m *mounts) unstage(volume, path string) error {
	defer m.lock(volume)()
	return m.unmount(path)
}

func (m *mounts) publish(r *csi.NodePublishVolumeRequest) error {
	defer m.lock(r.GetVolumeId())()
	source, target := r.GetStagingTargetPath(), r.GetTargetPath()
	if r.GetVolumeCapability().GetBlock() != nil {
		device, err := m.device(r.GetVolumeId())
		if err != nil {
			return err
		}
		source = device
	}
	mounted, err := m.mounter.IsMountPoint(target)
	if err != nil || mounted {
		return err
	}
	options := []string{"bind"}
	if r.GetReadonly() {
		options = append(options, "ro")
	}
	return m.mounter.Mount(source, target, "", options)
}

func (m *mounts) unpublish(volume, target string) error {
	defer m.lock(volume)()
	return m.unmount(target)
}

// A block volume has nothing to expand.
func (m *mounts) expand(volume, path string) error {
	defer m.lock(volume)()
	device, err := m.device(volume)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return err
	}
	_, err = mount.NewResizeFs(m.mounter.Exec).Resize(device, path)
	return err
}

// It is no error if nothing is mounted.
func (m *mounts) unmount(path string) error {
	for {
		mounted, err := m.mounter.IsMountPoint(path)
		switch {
		case errors.Is(err, fs.ErrNotExist) || err == nil && !mounted:
			return nil
		case err != nil:
			return err
		}
		if err := m.mounter.Unmount(path); err != nil {
			return err
		}
	}
}
