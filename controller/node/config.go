// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"path"
	"time"
)

// Config says what a process looks at, and where it tells it.
type Config struct {
	// Kubeconfig is a file; empty: the service account of the process' pod.
	Kubeconfig string
	// Node and NodeUID are of this node's Node. Both empty: from the service account's token in the API
	// server, which its policy compares.
	Node, NodeUID string
	// KubeletRoot is the kubelet's folder; it has the same path in the container.
	KubeletRoot string
	// Mounts is the mount table, in the form of mountinfo.
	Mounts string
	// Sys is where sysfs is.
	Sys string
	// BootID is the file that has the ID of the machine's boot.
	BootID string
	// Listen is host:port for /healthz and /metrics; none when empty.
	Listen string
	// SecureMetrics serves them over TLS, and /metrics to those only whom the API server
	// lets get it.
	SecureMetrics bool
	// Gather is how long after a mount changed it looks: many change together.
	Gather time.Duration
	// Rescan is how often it looks without changed mounts: records change as well.
	Rescan time.Duration
	// RetryAtMost is the longest time between attempts to write.
	RetryAtMost time.Duration
	// WriteTimeout is how long a request may take.
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
