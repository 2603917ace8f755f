// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"path"
	"time"
)

// Config says what a process looks at, and where it reports.
type Config struct {
	// Kubeconfig is a file; empty: the pod's service account.
	Kubeconfig string
	// Node and NodeUID name this node's Node. Both empty: the service account's token tells, as the API
	// server's policy compares.
	Node, NodeUID string
	// KubeletRoot is the kubelet's folder, with the same path in the container.
	KubeletRoot string
	// Mounts is the mount table, as mountinfo.
	Mounts string
	// Sys is sysfs's folder.
	Sys string
	// BootID is the file with the boot's ID.
	BootID string
	// Listen is host:port of /healthz and /metrics; empty: none.
	Listen string
	// SecureMetrics serves them over TLS, and /metrics only to permitted clients.
	SecureMetrics bool
	// Gather is the wait after a changed mount: many change together.
	Gather time.Duration
	// Rescan is the time between looks without changed mounts: records change too.
	Rescan time.Duration
	// RetryAtMost is the longest pause between attempts to write.
	RetryAtMost time.Duration
	// WriteTimeout bounds a request.
	WriteTimeout time.Duration
}

// DefaultConfig has the flags' defaults.
func DefaultConfig() Config {
	return Config{
		KubeletRoot: "/var/lib/kubelet", Mounts: "/proc/self/mountinfo", Sys: "/sys", BootID: "/proc/sys/kernel/random/boot_id", Listen: ":8080",
		Gather: 2 * time.Second, Rescan: 5 * time.Minute, RetryAtMost: 2 * time.Minute, WriteTimeout: 10 * time.Second,
	}
}

// Validate names a configuration's faults.
func (c Config) Validate() error {
	switch {
	case !path.IsAbs(c.KubeletRoot):
		return errors.New("--kubelet-root is not an absolute path")
	case (c.Node == "") != (c.NodeUID == ""):
		return errors.New("--node and --node-uid go together")
	case c.Gather <= 0 || c.Rescan < c.Gather || c.RetryAtMost <= 0 || c.WriteTimeout <= 0:
		return errors.New("times are above zero, and --rescan not below --gather")
	}
	return nil
}
