// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

const (
	// minFreeDisk is what a small cluster writes in its first minutes: etcd
	// preallocates 64 MB of log, and the audit log grows with every request.
	minFreeDisk = 512 << 20
	// inotifyOther is how many inotify instances the cluster takes beside one
	// per node for its plugin registry: kube-apiserver, kube-controller-manager,
	// the webhook's and the scheduler's certificates, and static pods.
	inotifyOther = 5
)

// preflight checks causes of late or silent failures.
func preflight(o Options, base string) error {
	if err := checkDisk(base); err != nil {
		return err
	}
	if err := checkCgroup("/sys/fs/cgroup"); err != nil {
		return err
	}
	if o.Real {
		if err := checkReal(o, base); err != nil {
			return err
		}
	}
	return checkInotify(o.Nodes, "/proc", os.Getuid())
}

// hostAddress is the address that the nodes report as theirs: one of this
// machine that is not a loopback address, which a kubelet refuses. Told of
// none, it would ask the DNS for its name at every status update.
func hostAddress() (string, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("addresses of this machine: %w", err)
	}
	if ip := usableAddress(addrs); ip != nil {
		return ip.String(), nil
	}
	return "", errors.New("this machine has only loopback addresses, and a kubelet refuses those: give it a network interface (a dummy one will do)")
}

// usableAddress returns the first address that a kubelet accepts as its own,
// IPv4 before IPv6; nil if there is none.
func usableAddress(addrs []net.Addr) net.IP {
	var second net.IP
	for _, addr := range addrs {
		network, ok := addr.(*net.IPNet)
		switch {
		case !ok || !network.IP.IsGlobalUnicast():
		case network.IP.To4() != nil:
			return network.IP
		case second == nil:
			second = network.IP
		}
	}
	return second
}

// checkDisk looks at the space that is free for us.
func checkDisk(dir string) error {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("free space of %s: %w", dir, err)
	}
	if free := fs.Bavail * uint64(fs.Bsize); free < minFreeDisk {
		return fmt.Errorf("the disk of %s has %d MiB left, %d MiB are needed: free some, or choose another --dir", dir, free>>20, minFreeDisk>>20)
	}
	return nil
}

// checkCgroup demands the cgroup mount that kubelets look at (they don't
// change it): without it they panic.
func checkCgroup(path string) error {
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("no cgroup file system at %s, which a kubelet needs to read: mount it (mount -t cgroup2 none %s) or start the container with one", path, path)
	}
	return nil
}

// checkInotify compares the kernel's limit of inotify instances per user with those in use and the
// nodes' needs. Past the limit a kubelet goes Ready and silently never registers its driver.
func checkInotify(nodes int, proc string, uid int) error {
	data, err := os.ReadFile(filepath.Join(proc, "sys/fs/inotify/max_user_instances"))
	if err != nil {
		return nil // not a kernel that has this limit
	}
	limit, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		return nil
	}
	used := inotifyInstances(proc, uid)
	if need := nodes + inotifyOther; used+need > limit {
		return fmt.Errorf("%d nodes need %d inotify instances; this user has %d of %d in use: use fewer nodes, or raise the limit (sysctl fs.inotify.max_user_instances=%d)",
			nodes, need, used, limit, used+need+64)
	}
	return nil
}

// inotifyInstances counts the open inotify instances of a user, as far as they
// can be seen.
func inotifyInstances(proc string, uid int) int {
	count := 0
	fds, _ := filepath.Glob(filepath.Join(proc, "[0-9]*", "fd", "*"))
	for _, fd := range fds {
		target, err := os.Readlink(fd)
		if err != nil || target != "anon_inode:inotify" {
			continue
		}
		info, err := os.Lstat(filepath.Dir(filepath.Dir(fd)))
		if err != nil {
			continue
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) == uid {
			count++
		}
	}
	return count
}
