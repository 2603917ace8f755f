// SPDX-License-Identifier: Apache-2.0

package csinode

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/moorage-dev/moorage/test/sandbox/disk/client"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// maxSocketPath is Linux's limit for a unix socket's path, in bytes.
const maxSocketPath = 107

// MountTable is the file in the plugin's folder with the node's mounts, in mountinfo's form.
const MountTable = "mountinfo"

type Config struct {
	Driver string
	// NodeName is the Kubernetes node's name, or the machine's if another machine had that name before. The
	// CSI ID is its diskapi.NodeID.
	NodeName string
	// MaxVolumes counts when the node announces itself for the first time; 0: the service's default. Later
	// changes are made at the service.
	MaxVolumes  int
	Zone        string
	KubeletRoot string
	ServiceURL  string
	// Disks is the folder of real disks, of package block; empty: simulated. Mounts need root.
	Disks string
	// Block lets block volumes be staged; see the package documentation.
	Block bool
	diskapi.Services
	// WriteTicks is when pods write, besides at once after a publish; nil: every second. The received
	// function is called after the writes.
	WriteTicks <-chan func()
	// Logger takes what the kubelet can't be told; slog.Default() if nil.
	Logger *slog.Logger
}

func (c Config) Validate() error {
	var errs []error
	for field, value := range map[string]string{
		"Driver": c.Driver, "NodeName": c.NodeName, "KubeletRoot": c.KubeletRoot, "ServiceURL": c.ServiceURL,
	} {
		if value == "" {
			errs = append(errs, fmt.Errorf("%s is empty", field))
		}
	}
	if c.MaxVolumes < 0 {
		errs = append(errs, fmt.Errorf("MaxVolumes is %d: it must not be negative", c.MaxVolumes))
	}
	for _, path := range []string{c.csiSocket(), c.registrySocket()} {
		if len(path) > maxSocketPath {
			errs = append(errs, fmt.Errorf("socket path %s has %d bytes, %d are allowed: choose a shorter KubeletRoot", path, len(path), maxSocketPath))
		}
	}
	return errors.Join(errs...)
}

func (c Config) pluginDir() string  { return filepath.Join(c.KubeletRoot, "plugins", c.Driver) }
func (c Config) csiSocket() string  { return filepath.Join(c.pluginDir(), "csi.sock") }
func (c Config) mountTable() string { return filepath.Join(c.pluginDir(), MountTable) }
func (c Config) stateFile() string  { return filepath.Join(c.pluginDir(), "staged.json") }
func (c Config) nodeID() string     { return diskapi.NodeID(c.NodeName) }
func (c Config) api() client.Client { return client.Client{BaseURL: c.ServiceURL} }
func (c Config) registrySocket() string {
	return filepath.Join(c.KubeletRoot, "plugins_registry", c.Driver+"-reg.sock")
}

func (c Config) logger() *slog.Logger {
	if c.Logger != nil {
		return c.Logger
	}
	return slog.Default()
}
