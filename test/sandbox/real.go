// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/moorage-dev/moorage/test/sandbox/disk/block"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
	"github.com/moorage-dev/moorage/test/sandbox/real/machine"
)

// runtimePrograms are what a real node runs besides its kubelet. make real builds them.
var runtimePrograms = []string{"containerd", "containerd-shim-runc-v2", "ctr", "runc", "host-local", "loopback", "ptp", "images/busybox.tar"}

var diskPrograms = map[string]string{
	"mkfs.ext4": "e2fsprogs", "resize2fs": "e2fsprogs", "e2fsck": "e2fsprogs", "mkfs.xfs": "xfsprogs", "xfs_growfs": "xfsprogs", "xfs_repair": "xfsprogs",
	"fsck": "util-linux", "blkid": "util-linux", "losetup": "mount", "mount": "mount",
}

func checkReal(o Options, folder string) error {
	var missing []error
	note := func(format string, args ...any) { missing = append(missing, fmt.Errorf(format, args...)) }
	if os.Geteuid() != 0 {
		note("root: containers and mounts need it")
	}
	for _, name := range runtimePrograms {
		if _, err := os.Stat(filepath.Join(o.Runtime, name)); err != nil {
			note("%s: make real builds it (%w)", name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(diskPrograms)) {
		if _, err := exec.LookPath(name); err != nil {
			note("%s: it is in Debian's package %s", name, diskPrograms[name])
		}
	}
	if err := block.Check(); err != nil {
		note("%w", err)
	}
	if known, err := os.ReadFile("/proc/filesystems"); err == nil && !strings.Contains(string(known), "\toverlay\n") {
		note("overlayfs, which images are unpacked to: this kernel does not know it")
	}
	for _, hidden := range machine.Hidden() {
		for what, path := range map[string]string{"clusters (--dir)": folder, "the sandbox": o.Executable, "the runtime": o.Runtime} {
			if strings.HasPrefix(path, hidden+"/") {
				note("another place for %s: a machine has a %s of its own", what, hidden)
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("real nodes are missing:\n%w", errors.Join(missing...))
	}
	return nil
}

func Machine(node string) string    { return "machine-" + node }
func Containerd(node string) string { return "containerd-" + node }

const realDisks = "blocks"

func (s *site) disksDir() string { return s.folder.file(realDisks) }

func (s *site) machineSocket(node string) string {
	return filepath.Join(s.nodes, node, "machine.sock")
}

func (s *site) runtimeSocket(node string) string {
	return filepath.Join(s.nodes, node, "cri.sock")
}

func cgroupOf(folder string) string {
	return fmt.Sprintf("moorage-%x", sha256.Sum256([]byte(folder)))[:20]
}

func machines(s *site) []component {
	if !s.options.Real {
		return nil
	}
	var list []component
	for i := range s.options.Nodes {
		node := NodeName(i + 1)
		m := component{name: Machine(node), command: "machine", cloneflags: machine.Cloneflags, args: []string{
			"--name=" + node, "--socket=" + s.machineSocket(node), "--forward=" + s.diskAddr,
			"--address=" + s.nodeIP, "--expose=" + net.JoinHostPort(s.nodeIP, s.kubeletPorts[node]),
		}}
		for _, name := range []string{node, MoorageNode(node)} {
			if l := s.links[name]; l != nil {
				m.args = append(m.args, "--forward="+l.Addr())
			}
		}
		list = append(list, m, component{
			name: Containerd(node), binary: filepath.Join(s.options.Runtime, "containerd"), machine: s.machineSocket(node),
			args: []string{"--config=" + filepath.Join(s.nodes, node, "containerd.toml")},
			env:  []string{"PATH=" + s.options.Runtime + ":" + os.Getenv("PATH")},
		})
	}
	return list
}

func realNode(s *site, c component) component {
	if !s.options.Real {
		return c
	}
	c.machine = s.machineSocket(c.name)
	c.args = append(c.args,
		"--runtime="+s.runtimeSocket(c.name),
		"--runtime-dir="+s.options.Runtime,
		"--cgroup="+cgroupOf(s.folder.path)+"-"+c.name,
		"--disks="+s.disksDir(),
		"--port="+s.kubeletPorts[c.name],
		"--client-ca="+s.authority.certPath(),
	)
	return c
}

func realAgent(s *site, agent component) component {
	if !s.options.Real {
		return agent
	}
	agent.machine = s.machineSocket(agent.node)
	agent.args = slices.DeleteFunc(agent.args, func(arg string) bool { return strings.HasPrefix(arg, "--mounts=") })
	agent.args = append(agent.args, "--mounts=/proc/self/mountinfo")
	return agent
}

const containerdConfig = `version = 3
root = %[1]q
state = "/run/containerd"
disabled_plugins = [
  "io.containerd.nri.v1.nri", "io.containerd.internal.v1.opt", "io.containerd.internal.v1.tracing",
  "io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.erofs", "io.containerd.snapshotter.v1.zfs",
]

[grpc]
address = %[2]q

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "moorage.dev/sandbox/pause:1"

[plugins."io.containerd.cri.v1.runtime"]
disable_apparmor = true
restrict_oom_score_adj = true

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = [%[3]q]
conf_dir = %[4]q

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = %[5]q
`

// Leases are below /run: a machine that boots has none.
const cniConfig = `{
  "cniVersion": "1.0.0",
  "name": "pods",
  "plugins": [{
    "type": "ptp",
    "ipam": {
      "type": "host-local",
      "dataDir": "/run/cni",
      "ranges": [[{"subnet": "10.244.%d.0/24"}]],
      "routes": [{"dst": "0.0.0.0/0"}]
    }
  }]
}
`

func (s *site) prepareReal(now time.Time) error {
	if !s.options.Real {
		return nil
	}
	s.kubeletPorts = map[string]string{}
	for i := range s.options.Nodes {
		address, err := s.ports.next()
		if err != nil {
			return err
		}
		if s.kubeletPorts[NodeName(i+1)], err = portOf(address); err != nil {
			return err
		}
	}
	var err error
	s.kubeletClient, err = s.authority.client(APIServer+"-kubelet-client", "kube-apiserver-kubelet-client", now)
	return err
}

func (s *site) writeReal() error {
	for i := range s.options.Nodes {
		if !s.options.Real {
			break
		}
		dir := filepath.Join(s.nodes, NodeName(i+1))
		cni := filepath.Join(dir, "cni")
		config := fmt.Sprintf(containerdConfig, filepath.Join(dir, "containerd"), s.runtimeSocket(NodeName(i+1)), s.options.Runtime, cni, filepath.Join(s.options.Runtime, "runc"))
		err := errors.Join(
			os.MkdirAll(cni, 0o755),
			os.WriteFile(filepath.Join(dir, "containerd.toml"), []byte(config), 0o644),
			os.WriteFile(filepath.Join(cni, "10-pods.conflist"), fmt.Appendf(nil, cniConfig, i+1), 0o644),
		)
		if err != nil {
			return fmt.Errorf("configuration of a container runtime: %w", err)
		}
	}
	return nil
}

// dropPower ends a machine as a power failure does: all unwritten data is lost.
func (c *Cluster) dropPower(ctx context.Context, node string) error {
	if err := c.loseUnwritten(node); err != nil {
		return err
	}
	names := append(c.besideKubelet(node), node)
	for _, name := range slices.Backward(names) {
		if err := c.procs.Kill(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) restorePower(node string) error {
	for _, name := range c.besideKubelet(node) {
		if err := c.procs.Start(name); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) besideKubelet(node string) []string {
	names := []string{Machine(node), Containerd(node)}
	if c.options.MoorageNode {
		names = append(names, MoorageNode(node))
	}
	return names
}

// shutdownFS shuts a file system down without a write, like xfstests: FS_IOC_SHUTDOWN of ext4 and XFS with
// NOLOGFLUSH.
const (
	shutdownFS = 0x8004587d // _IOR('X', 125, __u32)
	noLogFlush = 2
)

func (c *Cluster) loseUnwritten(node string) error {
	pid := c.pidOf(Machine(node))
	if pid == 0 {
		return nil
	}
	inside := fmt.Sprintf("/proc/%d/root", pid)
	staged, err := filepath.Glob(filepath.Join(inside, c.KubeletFolder(node), "plugins/kubernetes.io/csi", DriverName, "*/globalmount"))
	if err != nil {
		return err
	}
	var errs []error
	for _, path := range staged {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			errs = append(errs, err)
			continue
		}
		if on, err := mounted(f); err == nil && on {
			errs = append(errs, unix.IoctlSetPointerInt(int(f.Fd()), shutdownFS, noLogFlush))
		}
		errs = append(errs, f.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("power of %s: %w", node, err)
	}
	return nil
}

// CutStorage makes a real node's file systems fail until they are mounted anew. A block volume without a
// file system seems to go on.
func (c *Cluster) CutStorage(node string) error {
	c.touch()
	return errors.Join(c.loseUnwritten(node), block.Cut(c.site.disksDir(), diskapi.NodeID(node)))
}

// KillShims kills the processes that hold a real node's containers, but no container.
func (c *Cluster) KillShims(node string) error {
	c.touch()
	home, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", c.pidOf(Machine(node))))
	if err != nil {
		return fmt.Errorf("machine of %s: %w", node, err)
	}
	all, err := filepath.Glob("/proc/[0-9]*/ns/pid")
	if err != nil {
		return err
	}
	killed := 0
	for _, path := range all {
		pid := filepath.Base(filepath.Dir(filepath.Dir(path)))
		name, err := os.ReadFile(filepath.Join("/proc", pid, "comm"))
		if err != nil || strings.TrimSpace(string(name)) != "containerd-shim" { // the kernel keeps 15 characters of a name
			continue
		}
		if space, err := os.Readlink(path); err != nil || space != home {
			continue
		}
		n, err := strconv.Atoi(pid)
		if err != nil {
			return err
		}
		if err := unix.Kill(n, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("kill a shim of %s: %w", node, err)
		}
		killed++
	}
	if killed == 0 {
		return fmt.Errorf("no shim runs at %s", node)
	}
	return nil
}

func mounted(f *os.File) (bool, error) {
	var here, above unix.Stat_t
	if err := errors.Join(unix.Fstat(int(f.Fd()), &here), unix.Stat(filepath.Dir(f.Name()), &above)); err != nil {
		return false, err
	}
	return here.Dev != above.Dev, nil
}

func (c *Cluster) pidOf(name string) int {
	for _, s := range c.procs.Status() {
		if s.Name == name {
			return s.PID
		}
	}
	return 0
}

// File systems are unmounted once the last process of a machine is gone: that may take the kernel some
// time.
const cleanTimeout = 20 * time.Second

// cleanReal removes loop devices and cgroups that real nodes leave. It also cleans up after killed
// clusters.
func cleanReal(folder string) error {
	deadline := time.Now().Add(cleanTimeout)
	for {
		loops, err := block.Loops(folder)
		if err != nil {
			return err
		}
		if len(loops) == 0 {
			break
		}
		if err := block.Free(folder); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("loop device %s over %s is still in use", loops[0].Device, loops[0].File)
		}
		time.Sleep(20 * time.Millisecond)
	}
	cgroups, err := filepath.Glob("/sys/fs/cgroup/*/" + cgroupOf(folder) + "-*")
	if err != nil {
		return err
	}
	unified, err := filepath.Glob("/sys/fs/cgroup/" + cgroupOf(folder) + "-*")
	if err != nil {
		return err
	}
	for _, cgroup := range append(cgroups, unified...) {
		if err := removeCgroup(cgroup, deadline); err != nil {
			return err
		}
	}
	return nil
}

// Killed processes may be in the cgroup for a moment.
func removeCgroup(path string, deadline time.Time) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := removeCgroup(filepath.Join(path, entry.Name()), deadline); err != nil {
				return err
			}
		}
	}
	for {
		err := unix.Rmdir(path)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) || time.Now().After(deadline) {
			return fmt.Errorf("remove cgroup %s: %w", path, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (c *Cluster) Devices(node string) ([]string, error) {
	loops, err := block.Loops(c.devicesOf(node))
	var list []string
	for _, loop := range loops {
		list = append(list, loop.Device)
	}
	return list, err
}

func (c *Cluster) devicesOf(node string) string {
	return block.Node(c.site.disksDir(), diskapi.NodeID(node))
}

func (c *Cluster) awaitNoDevices(ctx context.Context, node string) error {
	for {
		devices, err := c.Devices(node)
		if err != nil || len(devices) == 0 {
			return err
		}
		if err := block.Free(c.devicesOf(node)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is switched off, and %v are still in use: %w", node, devices, context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (c *Cluster) DiskFile(handle string) string { return block.File(c.site.disksDir(), handle) }

// CheckDisk changes nothing.
func (c *Cluster) CheckDisk(ctx context.Context, handle string) error {
	file := c.DiskFile(handle)
	kind, err := exec.CommandContext(ctx, "blkid", "-p", "-s", "TYPE", "-o", "value", file).Output()
	if err != nil {
		return fmt.Errorf("file system of disk %s: %w", handle, err)
	}
	var check *exec.Cmd
	switch kind := strings.TrimSpace(string(kind)); kind {
	case "ext4", "ext3":
		check = exec.CommandContext(ctx, "e2fsck", "-f", "-n", file)
	case "xfs":
		check = exec.CommandContext(ctx, "xfs_repair", "-n", "-f", file)
	default:
		return fmt.Errorf("file system of disk %s is %q, for which there is no checker here", handle, kind)
	}
	if out, err := check.CombinedOutput(); err != nil {
		return fmt.Errorf("file system of disk %s: %w\n%s", handle, err, out)
	}
	return nil
}
