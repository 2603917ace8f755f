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
	// minFreeDisk is for a small cluster's first minutes: etcd preallocates 64 MB of log, and the audit log
	// grows with every request.
	minFreeDisk  = 512 << 20
	inotifyOther = 5
)

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

// A kubelet refuses a loopback address. Without an address it would ask the DNS at every status update.
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

// Kubelets panic without this cgroup mount. They don't change it.
func checkCgroup(path string) error {
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("no cgroup file system at %s, which a kubelet needs to read: mount it (mount -t cgroup2 none %s) or start the container with one", path, path)
	}
	return nil
}

// Past the limit of inotify instances, a kubelet goes Ready and silently never registers its driver.
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
