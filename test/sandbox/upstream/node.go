// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/featuregate"
	fakeremote "k8s.io/cri-client/pkg/fake"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	cadvisortest "k8s.io/kubernetes/pkg/kubelet/cadvisor/testing"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubemark"

	"github.com/moorage-dev/moorage/test/sandbox/disk/csinode"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

const (
	// kubeletQPS and kubeletBurst are the kubelet's defaults (kubeAPIQPS, kubeAPIBurst of
	// KubeletConfiguration).
	kubeletQPS   = 50
	kubeletBurst = 100
	eventQPS     = 50
	eventBurst   = 100
	// noDNS is an address for documentation. Without an address, a kubelet warns of each pod
	// (MissingClusterDNS).
	noDNS                 = "192.0.2.53"
	runtimeConnectTimeout = 15 * time.Second
)

type nodeOptions struct {
	name           string
	kubeconfig     string
	rootDir        string
	statusInterval time.Duration
	leaseDuration  time.Duration
	maxPods        int
	driver         string
	slots          int
	zone           string
	staticPods     string
	nodeIP         string
	diskURL        string
	emulated       string
	bootID         string
	bootFile       string
	systemUUID     string
	machine        string
	events         bool
	services       diskapi.Services
	runtime        string
	runtimeDir     string
	cgroup         string
	disks          string
	port           int
	clientCA       string
}

func newNodeCommand() *cobra.Command {
	var o nodeOptions
	cmd := &cobra.Command{
		Use:   "node",
		Short: "Run a kubelet without containers, and a CSI node plugin",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.name, "name", "", "name of the node")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "how to reach the API server")
	flags.StringVar(&o.rootDir, "root-dir", "", "the kubelet's folder; kept when the process is killed, so that volumes are reconstructed")
	flags.DurationVar(&o.statusInterval, "status-interval", 10*time.Second, "the kubelet's nodeStatusUpdateFrequency")
	flags.DurationVar(&o.leaseDuration, "lease-duration", 40*time.Second, "the kubelet's nodeLeaseDurationSeconds; it renews its Lease four times in it")
	flags.StringVar(&o.nodeIP, "node-ip", "", "address of the node; without it the kubelet asks the DNS for its name at every status update")
	flags.StringVar(&o.staticPods, "static-pods", "", "folder of static pods; none if empty, which saves an inotify instance")
	flags.IntVar(&o.maxPods, "max-pods", 250, "the kubelet's maxPods")
	flags.StringVar(&o.driver, "driver", "", "CSI driver that the node plugin serves")
	flags.IntVar(&o.slots, "slots", 0, "MaxVolumesPerNode that the plugin reports; 0 leaves it to the disk service")
	flags.StringVar(&o.zone, "zone", "", "zone that the plugin reports; none if the driver has no zones")
	flags.StringVar(&o.emulated, "emulated-version", "", "minor release of Kubernetes whose features the kubelet has by default; its own if empty")
	flags.StringVar(&o.systemUUID, "system-uuid", "", "what names the machine in the Node's status; nothing if empty")
	flags.StringVar(&o.bootFile, "boot-id-file", "", "file that has the machine's boot, as the Node's status has it; it is made if there is none, by a boot of its own")
	flags.StringVar(&o.machine, "machine", "", "name of the machine at the disk service; the node's if empty")
	flags.BoolVar(&o.events, "events", true, "write events to the API server, as a kubelet does, where the kernel's log can be read")
	flags.BoolVar(&o.services.GroupSnapshots, "group-snapshots", false, "have the node plugin say that the driver makes snapshots of several volumes at once")
	flags.BoolVar(&o.services.Expansion, "expand", false, "have the node plugin offer EXPAND_VOLUME")
	flags.BoolVar(&o.services.ExpandOffline, "expand-offline", false, "have the node plugin say that the driver expands offline")
	flags.StringVar(&o.runtime, "runtime", "", "unix socket of a container runtime; without it containers only seem to run, and nothing is mounted")
	flags.StringVar(&o.runtimeDir, "runtime-dir", "", "folder of the container runtime's programs, with the images that it is given in the folder images")
	flags.StringVar(&o.cgroup, "cgroup", "", "cgroup of the node's pods")
	flags.IntVar(&o.port, "port", 0, "port at which the kubelet serves")
	flags.StringVar(&o.clientCA, "client-ca", "", "authority of the client certificates that the kubelet accepts")
	flags.StringVar(&o.disks, "disks", "", "folder of the disk service's real disks")
	flags.StringVar(&o.diskURL, "disk-url", "", "admin API of the disk service")
	return cmd
}

func (o nodeOptions) run(ctx context.Context) error {
	if o.name == "" || o.kubeconfig == "" || o.rootDir == "" {
		return errors.New("--name, --kubeconfig and --root-dir are needed")
	}
	if err := emulate(o.emulated); err != nil {
		return err
	}
	for _, dir := range []string{filepath.Join(o.rootDir, "pod-logs"), o.staticPods} {
		if err := os.MkdirAll(dir, 0o755); dir != "" && err != nil {
			return fmt.Errorf("folder of the node: %w", err)
		}
	}
	if err := o.boot(); err != nil {
		return err
	}
	failed := make(chan error, 1)
	plugin, err := csinode.New(csinode.Config{
		Driver: o.driver, NodeName: cmp.Or(o.machine, o.name), MaxVolumes: o.slots, Zone: o.zone,
		KubeletRoot: o.rootDir, ServiceURL: o.diskURL, Services: o.services, Disks: o.disks,
	})
	if err != nil {
		return err
	}
	go func() { failed <- fmt.Errorf("CSI node plugin: %w", plugin.Run(ctx)) }()
	kubelet, stop, err := o.kubelet(ctx)
	if err != nil {
		return err
	}
	defer stop()
	go kubelet.Run(ctx)
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

// Kubelets have no flag for the feature gates of another release.
func emulate(release string) error {
	if release == "" {
		return nil
	}
	minor, err := version.ParseMajorMinor(release)
	if err != nil {
		return fmt.Errorf("--emulated-version: %w", err)
	}
	gates, ok := feature.DefaultMutableFeatureGate.(featuregate.MutableVersionedFeatureGate)
	if !ok {
		return errors.New("the kubelet's feature gates are of another kind")
	}
	return gates.SetEmulationVersion(minor)
}

func (o nodeOptions) kubelet(ctx context.Context) (*kubemark.HollowKubelet, func(), error) {
	if o.runtime != "" {
		kubelet, err := o.realKubelet(ctx)
		return kubelet, func() {}, err
	}
	flags, config := o.settings()
	client, heartbeat, events, err := o.clients(config)
	if err != nil {
		return nil, nil, err
	}
	endpoint := "unix://" + filepath.Join(o.rootDir, "cri.sock")
	fake := fakeremote.NewFakeRemoteRuntime()
	if err := fake.Start(endpoint); err != nil {
		return nil, nil, fmt.Errorf("start the fake container runtime: %w", err)
	}
	runtime, err := runtimeService(ctx, endpoint)
	if err != nil {
		fake.Stop()
		return nil, nil, fmt.Errorf("connect to the fake container runtime: %w", err)
	}
	kubelet := kubemark.NewHollowKubelet(flags, config, client, heartbeat,
		machine{&cadvisortest.Fake{NodeName: o.name}, o.bootID, o.systemUUID}, images{fake.ImageService}, runtime, cm.NewStubContainerManager())
	kubelet.KubeletDeps.ProbeManager = prober{}
	if o.events && readable(kernelLog) { // kubemark leaves them out
		kubelet.KubeletDeps.Recorder, kubelet.KubeletDeps.EventClient = nil, events.CoreV1() // RunKubelet makes the recorder
	}
	return kubelet, fake.Stop, nil
}

// A kubelet with a real recorder reads kernelLog, and does not start without it (k8s.io/kubernetes
// pkg/kubelet/oom, NewWatcher).
const kernelLog = "/dev/kmsg"

func readable(file string) bool {
	f, err := os.Open(file)
	if err == nil {
		err = f.Close()
	}
	return err == nil
}

// Switching the machine on removes the boot's file.
func (o *nodeOptions) boot() error {
	if o.bootFile == "" {
		return nil
	}
	id, err := os.ReadFile(o.bootFile)
	if errors.Is(err, fs.ErrNotExist) {
		id = []byte(uuid.NewUUID())
		err = os.WriteFile(o.bootFile, id, 0o600)
	}
	if err != nil {
		return fmt.Errorf("the machine's boot: %w", err)
	}
	o.bootID = string(id)
	return nil
}

type machine struct {
	*cadvisortest.Fake
	bootID, systemUUID string
}

// settings starts from kubemark's configuration, and restores the kubelet's behaviour where it matters for
// volumes.
func (o nodeOptions) settings() (*options.KubeletFlags, *kubeletconfig.KubeletConfiguration) {
	flags, config := kubemark.GetHollowKubeletConfig(&kubemark.HollowKubeletOptions{
		NodeName: o.name,
		MaxPods:  o.maxPods,
	})
	// kubemark makes a folder of its own in /tmp, whatever TMPDIR says.
	_ = os.RemoveAll(flags.RootDirectory) // one empty folder at most is left
	flags.RootDirectory = o.rootDir
	flags.NodeIP = o.nodeIP
	config.StaticPodPath = o.staticPods
	config.PodLogsDir = filepath.Join(o.rootDir, "pod-logs")
	config.EnableControllerAttachDetach = true
	config.FailCgroupV1 = false
	config.RegistryPullQPS = 0
	config.SerializeImagePulls = false
	config.SyncFrequency.Duration = time.Minute
	config.NodeStatusUpdateFrequency.Duration = o.statusInterval
	config.NodeLeaseDurationSeconds = int32(o.leaseDuration / time.Second)
	config.EnableServer = false
	config.ClusterDNS = []string{noDNS}
	config.ReadOnlyPort = 0
	return flags, config
}

// The heartbeats' client is not rate-limited, and gives up before the next heartbeat is due.
func (o nodeOptions) clients(config *kubeletconfig.KubeletConfiguration) (client, heartbeat, events *kubernetes.Clientset, err error) {
	base, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("kubeconfig of the node: %w", err)
	}
	base.ContentType = runtime.ContentTypeProtobuf
	base.UserAgent = "kubelet"
	base.QPS, base.Burst = kubeletQPS, kubeletBurst
	if client, err = kubernetes.NewForConfig(base); err != nil {
		return nil, nil, nil, fmt.Errorf("client of the node: %w", err)
	}
	beat := rest.CopyConfig(base)
	beat.QPS = -1
	beat.Timeout = min(config.NodeStatusUpdateFrequency.Duration, time.Duration(config.NodeLeaseDurationSeconds)*time.Second)
	if heartbeat, err = kubernetes.NewForConfig(beat); err != nil {
		return nil, nil, nil, fmt.Errorf("heartbeat client of the node: %w", err)
	}
	recorded := rest.CopyConfig(base)
	recorded.QPS, recorded.Burst = eventQPS, eventBurst
	if events, err = kubernetes.NewForConfig(recorded); err != nil {
		return nil, nil, nil, fmt.Errorf("event client of the node: %w", err)
	}
	return client, heartbeat, events, nil
}
