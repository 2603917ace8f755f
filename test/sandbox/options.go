// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Scenarios with equal shapes may share a cluster.
type Shape struct {
	Mode  Mode `json:"mode"`
	Nodes int  `json:"nodes"`
	// 0 means that the driver states no limit.
	Slots int `json:"slots"`
	// The nodes are in zones by turns. 0: each node can have each disk.
	Zones           int           `json:"zones,omitempty"`
	MoorageAttacher bool          `json:"moorageAttacher,omitempty"`
	AttachLatency   time.Duration `json:"attachLatency"`
	DetachLatency   time.Duration `json:"detachLatency"`
	// 0 is any number.
	DiskParallel int `json:"diskParallel,omitempty"`
	// LenientDisks lets an exclusive disk be attached to a second node, like drivers with live migration.
	LenientDisks bool `json:"lenientDisks,omitempty"`
	ListVolumes  bool `json:"listVolumes,omitempty"`
	VolumeHealth bool `json:"volumeHealth,omitempty"`
	// It bounds how soon volumesInUse shows mounts.
	KubeletStatusInterval time.Duration `json:"kubeletStatusInterval"`
	// 0 is kube-controller-manager's default, 50 s. Kubelets' Leases are then shorter: see leaseDuration.
	NodeMonitorGracePeriod time.Duration `json:"nodeMonitorGracePeriod,omitempty"`
	Extender               bool          `json:"extender,omitempty"`
	// DefaultLeases has Moorage's Leases last 15 s, as by default, and not a shorter time.
	DefaultLeases bool `json:"defaultLeases,omitempty"`
	MoorageNode   bool `json:"moorageNode,omitempty"`
	// RequireReport has no volume leave a node without moorage-node's report.
	RequireReport bool `json:"requireReport,omitempty"`
	// NetworkFences has csi-addons' definitions, and a stand-in for its controllers.
	NetworkFences bool `json:"networkFences,omitempty"`
	NamedMachines bool `json:"namedMachines,omitempty"`
	// Real has nodes run containers and mount disks, in namespaces and with loop devices. It needs root and
	// `make real`.
	Real bool `json:"real,omitempty"`
	// SilentKubelets has kubelets write no events, so that counts of writes are of volumes.
	SilentKubelets bool       `json:"silentKubelets,omitempty"`
	Operations     Operations `json:"operations,omitzero"`
	// Kubernetes is the minor release that the control plane and the kubelets emulate. Empty: their own.
	Kubernetes string `json:"kubernetes,omitempty"`
}

func EmulatedReleases() []string { return []string{"1.34", "1.35", "1.36"} }

func DefaultShape() Shape {
	return Shape{Mode: Standalone, Nodes: 3, Slots: 25, KubeletStatusInterval: 10 * time.Second}
}

type Options struct {
	Shape
	// Empty picks the first free name.
	Name string
	// BaseDir must have a short path, since unix sockets live in it. Empty: DefaultBaseDir.
	BaseDir    string
	Executable string
	// Binaries of another release of Kubernetes (test/kubernetes); empty means Executable.
	ControlPlane, Kubelets string
	// Attacher is StockAttacher, MoorageAttacher, or the path of a csi-attacher. Empty:
	// MOORAGE_SANDBOX_ATTACHER, or StockAttacher.
	Attacher                      string
	OwnAttacher                   string
	CSIAddons                     string
	Sidecars, SnapshotDefinitions string
	Runtime                       string
	TuneAttacher                  bool
	// TuneControlPlane raises request limits to UpstreamTuned's, and has kube-controller-manager lead by a
	// Lease. Leases last their default (15 s).
	TuneControlPlane bool
	// Nodeless starts no nodes and no View; the caller brings both. Nodes must be 0.
	Nodeless  bool
	Manifests fs.FS
	// Components names the commands of Executable. A missing command is an error at the start.
	Components []string
	// Bring brings Moorage into the cluster in the sandbox's place. In mode standalone it must define
	// Moorage's resources.
	Bring func(ctx context.Context, c *Cluster) error
	// ServiceProxy is the unix socket of an HTTP proxy (CONNECT) by which the API server reaches Services.
	ServiceProxy string
	Keep         bool
	Progress     func(string)

	ownAttacher bool
}

// A kubelet on a busy machine needs the time to renew its Lease.
const minGracePeriod = 20 * time.Second

const maxLeaseDuration = 40 * time.Second

// leaseDuration is four fifths of the grace period, as in upstream's defaults: the Lease of a NotReady node
// is over.
func (s Shape) leaseDuration() time.Duration {
	if s.NodeMonitorGracePeriod == 0 {
		return maxLeaseDuration
	}
	return min(maxLeaseDuration, s.NodeMonitorGracePeriod*4/5)
}

var clusterName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$`)

func DefaultBaseDir() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("moorage-sandbox-%d", os.Getuid()))
}

// Validate reports the first value that can't work, with its remedy.
func (o Options) Validate() error {
	switch {
	case o.Nodeless && o.Nodes != 0:
		return fmt.Errorf("%d nodes of a cluster without nodes: use 0", o.Nodes)
	case o.Nodes < 1 && !o.Nodeless:
		return fmt.Errorf("%d nodes: at least one is needed", o.Nodes)
	case o.Slots < 0:
		return fmt.Errorf("%d slots: use 0 for no limit, or a positive number", o.Slots)
	case o.Zones < 0 || o.Zones > 0 && !o.Operations.On:
		return fmt.Errorf("%d zones: use 0 for a driver without zones, or a positive number and Operations.On, since the sandbox's own provisioner knows no zones", o.Zones)
	case o.AttachLatency < 0 || o.DetachLatency < 0:
		return errors.New("latencies can't be negative")
	case o.DiskParallel < 0:
		return fmt.Errorf("%d operations of the disk service at a time: use 0 for any number, or a positive one", o.DiskParallel)
	case o.KubeletStatusInterval < 100*time.Millisecond:
		return fmt.Errorf("kubelet status interval %s: at least 100ms is needed", o.KubeletStatusInterval)
	case o.NodeMonitorGracePeriod != 0 && o.NodeMonitorGracePeriod < minGracePeriod:
		return fmt.Errorf("node monitor grace period %s: a kubelet on a busy machine needs at least %s to renew its Lease", o.NodeMonitorGracePeriod, minGracePeriod)
	case o.Bring != nil && (o.Extender || o.Mode != Standalone && o.Mode != Upstream):
		return errors.New("Moorage is brought by others in the modes standalone and upstream, and without the sandbox's extender")
	case o.Extender && !o.Mode.Moorage():
		return fmt.Errorf("mode %s has no Moorage, and so no extender: use standalone", o.Mode)
	case o.MoorageNode && (!o.Mode.Moorage() || o.Bring != nil):
		return fmt.Errorf("moorage-node is the sandbox's own, and does not run in mode %s or where Moorage is brought by others: use standalone", o.Mode)
	case o.RequireReport && (o.Mode != Standalone || !o.MoorageNode):
		return errors.New("moorage-node's report can be required in mode standalone, where it runs on each node")
	case o.NetworkFences && (o.Mode != Standalone || o.Bring != nil):
		return errors.New("NetworkFences are made in mode standalone, by the sandbox's own controller")
	case o.Real && (o.Kubelets != "" || o.NamedMachines):
		return errors.New("real nodes are of this tree's release of Kubernetes, and no two have one name")
	case o.Kubernetes != "" && !slices.Contains(EmulatedReleases(), o.Kubernetes):
		return fmt.Errorf("Kubernetes %s can't be emulated: use one of %s, or leave it out", o.Kubernetes, strings.Join(EmulatedReleases(), ", "))
	case o.Kubernetes != "" && o.ControlPlane+o.Kubelets != "":
		return fmt.Errorf("a binary of another release can't emulate %s: leave one of the two out", o.Kubernetes)
	case o.Name != "" && !clusterName.MatchString(o.Name):
		return fmt.Errorf("cluster name %q: use up to 32 lower-case letters, digits and dashes", o.Name)
	}
	if _, err := ParseMode(string(o.Mode)); err != nil {
		return err
	}
	return o.Operations.validate()
}

func (o Options) complete() (Options, error) {
	if o.BaseDir == "" {
		o.BaseDir = DefaultBaseDir()
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if o.Executable == "" {
		path, err := os.Executable()
		if err != nil {
			return o, fmt.Errorf("find the sandbox's own executable: %w", err)
		}
		o.Executable = path
	}
	if o.Real && o.Runtime == "" {
		o.Runtime = filepath.Join(filepath.Dir(o.Executable), "real")
	}
	for _, path := range []*string{&o.ControlPlane, &o.Kubelets} {
		if *path == "" {
			continue
		}
		if _, err := os.Stat(*path); err != nil {
			return o, fmt.Errorf("binary of another release of Kubernetes: %w (make %s builds it)", err, *path)
		}
		absolute, err := filepath.Abs(*path) // components run in the cluster's folder
		if err != nil {
			return o, fmt.Errorf("binary of another release of Kubernetes: %w", err)
		}
		*path = absolute
	}
	o.ownAttacher = o.choice() == MoorageAttacher
	path, err := o.AttacherPath()
	if err != nil && !o.ownAttacher && !o.MoorageAttacher {
		return o, err
	}
	o.Attacher = path
	if o.NetworkFences && o.CSIAddons == "" {
		o.CSIAddons = filepath.Join(filepath.Dir(o.Executable), csiAddons)
	}
	if err := o.completeOperations(); err != nil {
		return o, err
	}
	return o, nil
}
