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

// Shape is what a scenario can ask of its cluster. Two scenarios with equal
// shapes may share one cluster.
type Shape struct {
	// Mode decides which components run.
	Mode Mode `json:"mode"`
	// Nodes is how many nodes there are, named worker-1 and so on.
	Nodes int `json:"nodes"`
	// Slots is how many volumes the driver allows on a node; 0 means the
	// driver states no limit.
	Slots int `json:"slots"`
	// Zones is how many zones the nodes are in, by turns: the driver has a topology then, and a disk is in
	// one of them. 0 means that each node can have each disk.
	Zones int `json:"zones,omitempty"`
	// MoorageAttacher has moorage-attacher stand in for external-attacher, and
	// Moorage's controller know it.
	MoorageAttacher bool `json:"moorageAttacher,omitempty"`
	// AttachLatency and DetachLatency are how long the disk service takes.
	AttachLatency time.Duration `json:"attachLatency"`
	DetachLatency time.Duration `json:"detachLatency"`
	// DiskParallel is how many attaches and detaches the disk service carries out
	// at a time; 0 is any number.
	DiskParallel int `json:"diskParallel,omitempty"`
	// LenientDisks has the disk service attach an exclusive disk to a second node
	// instead of refusing it, as a driver does that supports live migration.
	LenientDisks bool `json:"lenientDisks,omitempty"`
	// ListVolumes has the driver offer LIST_VOLUMES and
	// LIST_VOLUMES_PUBLISHED_NODES, and the attacher compare once a second.
	ListVolumes bool `json:"listVolumes,omitempty"`
	// VolumeHealth has the driver offer GET_VOLUME_HEALTH and LIST_VOLUME_HEALTH, which report volumes'
	// faults.
	VolumeHealth bool `json:"volumeHealth,omitempty"`
	// KubeletStatusInterval is the kubelets' nodeStatusUpdateFrequency. It
	// bounds how soon a kubelet reports volumesInUse, and so mounts.
	KubeletStatusInterval time.Duration `json:"kubeletStatusInterval"`
	// NodeMonitorGracePeriod is how long kube-controller-manager hears nothing from a node before it
	// calls it NotReady; 0 is its default, 50 s. Kubelets' Leases are then shorter, as by default: see
	// leaseDuration.
	NodeMonitorGracePeriod time.Duration `json:"nodeMonitorGracePeriod,omitempty"`
	// Extender has a stock kube-scheduler without NodeVolumeLimits place all pods, and ask
	// Moorage's scheduler as its extender.
	Extender bool `json:"extender,omitempty"`
	// MoorageNode has moorage-node run on each node.
	MoorageNode bool `json:"moorageNode,omitempty"`
	// RequireReport has no volume leave a node without its report.
	RequireReport bool `json:"requireReport,omitempty"`
	// NetworkFences has csi-addons' definitions and a stand-in for its controllers, and lets Moorage's
	// controller make NetworkFences. A Node names its machine then, as elsewhere: a machine that has
	// booted is let in by that.
	NetworkFences bool `json:"networkFences,omitempty"`
	// NamedMachines has each Node also name its machine by a systemUUID without NetworkFences, so that
	// another machine with its name can be told apart (Cluster.Replace).
	NamedMachines bool `json:"namedMachines,omitempty"`
	// Real has nodes run containers and mount disks: each has a machine of its own, a set of
	// namespaces, with a container runtime and a whole kubelet, and a disk is a file that is
	// attached as a loop device. It needs root and what make real builds.
	Real bool `json:"real,omitempty"`
	// SilentKubelets has kubelets write no events, so that counts of writes are of volumes.
	SilentKubelets bool `json:"silentKubelets,omitempty"`
	// Operations has the driver make snapshots, clones and larger volumes, and the sidecars that
	// ask it to: see Operations.
	Operations Operations `json:"operations,omitzero"`
	// Kubernetes is the minor release, such as 1.34, that the API server, kube-controller-manager,
	// kube-scheduler and the kubelets emulate, in served resources, fields and defaults. Empty: their
	// own. Moorage's processes do not know it.
	Kubernetes string `json:"kubernetes,omitempty"`
}

// EmulatedReleases are the minor releases that Shape.Kubernetes may name.
func EmulatedReleases() []string { return []string{"1.34", "1.35", "1.36"} }

// DefaultShape is three nodes with room for 25 volumes each, instant disks and
// the kubelet's own status interval.
func DefaultShape() Shape {
	return Shape{Mode: Standalone, Nodes: 3, Slots: 25, KubeletStatusInterval: 10 * time.Second}
}

// Options describes a cluster to start.
type Options struct {
	Shape
	// Name identifies the cluster among those of the same user; empty picks
	// the first free one of sandbox, sandbox-2, …
	Name string
	// BaseDir holds a folder per cluster; empty means DefaultBaseDir. Unix
	// sockets live in it, so its path has to be short.
	BaseDir string
	// Executable is the multi-call binary that components are started from;
	// empty means the running one.
	Executable string
	// ControlPlane is a binary of another release of Kubernetes (test/kubernetes), for kube-apiserver,
	// kube-controller-manager and kube-scheduler, and Kubelets one for the nodes; empty means
	// Executable.
	ControlPlane, Kubelets string
	// Attacher is StockAttacher, MoorageAttacher, or the path of a csi-attacher;
	// empty means what the environment variable MOORAGE_SANDBOX_ATTACHER says,
	// or StockAttacher.
	Attacher string
	// OwnAttacher is the path of a moorage-attacher binary; empty means Executable's.
	OwnAttacher string
	// CSIAddons is the folder of csi-addons' definitions; empty means the folder beside Executable.
	CSIAddons string
	// Sidecars is the folder of csi-provisioner, csi-resizer, csi-snapshotter and snapshot-controller,
	// and SnapshotDefinitions the folder of the snapshots' definitions; empty means Executable's, and
	// external-snapshotter in it.
	Sidecars, SnapshotDefinitions string
	// Runtime is the folder of what real nodes run, with their images; empty means the folder real
	// beside Executable.
	Runtime string
	// TuneAttacher raises external-attacher's request limits and workers in
	// every mode, as UpstreamTuned does.
	TuneAttacher bool
	// TuneControlPlane raises the request limits of kube-controller-manager and of the
	// scheduler in every mode, to UpstreamTuned's, and has kube-controller-manager lead by a
	// Lease. Leases last as long as they do by default (15 s).
	TuneControlPlane bool
	// Nodeless starts no nodes and no View: the caller brings nodes, and observes. Nodes must be 0.
	Nodeless bool
	// Manifests holds Moorage's plain YAML manifests, applied in modes with
	// Moorage. Nil means there are none.
	Manifests fs.FS
	// Components names the commands that Executable has. One that a mode
	// needs and that isn't there is an error at the start.
	Components []string
	// Bring brings Moorage into the cluster in the sandbox's place, once the API
	// server serves; in mode standalone it must leave Moorage's resources defined. The sandbox then
	// starts none of Moorage's processes, applies none of its manifests, and has
	// a stock kube-scheduler place what is not left to Moorage's.
	Bring func(ctx context.Context, c *Cluster) error
	// ServiceProxy is the unix socket of an HTTP proxy by which the API server reaches Services, with
	// the method CONNECT; empty without one.
	ServiceProxy string
	// Keep leaves the folder with all logs in place when the cluster stops.
	Keep bool
	// Progress receives one line per step while the cluster starts and stops.
	Progress func(string)

	// ownAttacher: moorage-attacher, in any shape.
	ownAttacher bool
}

// minGracePeriod leaves a kubelet on a busy machine the time to renew its Lease.
const minGracePeriod = 20 * time.Second

// maxLeaseDuration is the default of the kubelet's nodeLeaseDurationSeconds.
const maxLeaseDuration = 40 * time.Second

// leaseDuration is for how long a kubelet's Lease counts once it is renewed: four fifths of
// the grace period, as upstream's defaults have it, so that the Lease of a node that is called
// NotReady is over.
func (s Shape) leaseDuration() time.Duration {
	if s.NodeMonitorGracePeriod == 0 {
		return maxLeaseDuration
	}
	return min(maxLeaseDuration, s.NodeMonitorGracePeriod*4/5)
}

var clusterName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$`)

// DefaultBaseDir is where the clusters of this user live.
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

// complete fills in defaults. It returns an error when a binary is missing.
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
