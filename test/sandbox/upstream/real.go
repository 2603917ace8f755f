// SPDX-License-Identifier: Apache-2.0

//go:build !kubernetes1.34 && !kubernetes1.35 && !kubernetes1.36

package upstream

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	cadvisorapi "github.com/google/cadvisor/lib/model"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	remote "k8s.io/cri-client/pkg"
	"k8s.io/klog/v2"
	kubeletapp "k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	cadvisortest "k8s.io/kubernetes/pkg/kubelet/cadvisor/testing"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	kubeletutil "k8s.io/kubernetes/pkg/kubelet/util"
	"k8s.io/kubernetes/pkg/kubemark"
	"k8s.io/kubernetes/pkg/util/oom"
)

const runtimeStartTimeout = time.Minute

// realKubelet lacks cAdvisor, the priorities of processes that run out of memory, and cgroups for each
// quality of service.
func (o nodeOptions) realKubelet(ctx context.Context) (*kubemark.HollowKubelet, error) {
	endpoint := "unix://" + o.runtime
	if err := awaitSocket(ctx, o.runtime); err != nil {
		return nil, fmt.Errorf("container runtime: %w", err)
	}
	if err := o.importImages(ctx); err != nil {
		return nil, err
	}
	flags, config := o.settings()
	flags.CertDirectory = filepath.Join(o.rootDir, "pki")
	config.ContainerRuntimeEndpoint, config.ImageServiceEndpoint = endpoint, endpoint
	config.VolumePluginDir = filepath.Join(o.rootDir, "volumeplugins")
	config.MakeIPTablesUtilChains = false
	config.EvictionHard = nil // nodes share their machine's memory and disk with others
	o.serve(config)
	client, heartbeat, events, err := o.clients(config)
	if err != nil {
		return nil, err
	}
	deps, err := kubeletapp.UnsecuredDependencies(ctx, &options.KubeletServer{KubeletFlags: *flags, KubeletConfiguration: *config}, utilfeature.DefaultFeatureGate)
	if err != nil {
		return nil, fmt.Errorf("kubelet: %w", err)
	}
	if deps.RemoteRuntimeService, err = runtimeService(ctx, endpoint); err != nil {
		return nil, fmt.Errorf("connect to the container runtime: %w", err)
	}
	deps.RemoteImageService, err = remote.NewRemoteImageServiceBuilder().WithEndpoint(endpoint).WithConnectionTimeout(runtimeConnectTimeout).Build(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect to the container runtime: %w", err)
	}
	deps.RemoteRuntimeService = unconfined{deps.RemoteRuntimeService}
	auth, reload, err := kubeletapp.BuildAuth(types.NodeName(o.name), client, *config)
	if err != nil {
		return nil, fmt.Errorf("kubelet: %w", err)
	}
	reload(ctx.Done())
	deps.Auth = auth
	deps.KubeClient, deps.HeartbeatClient = client, heartbeat
	if o.events && readable(kernelLog) {
		deps.EventClient = events.CoreV1()
	}
	deps.CAdvisorInterface = realMachine{machine{&cadvisortest.Fake{NodeName: o.name}, o.bootID, o.systemUUID}, o.rootDir}
	deps.ContainerManager = confined{cm.NewStubContainerManager(), o.cgroup}
	deps.OOMAdjuster = oom.NewFakeOOMAdjuster()
	deps.PodStartupLatencyTracker = kubeletutil.NewPodStartupLatencyTracker()
	deps.NodeStartupLatencyTracker = kubeletutil.NewNodeStartupLatencyTracker(klog.FromContext(ctx))
	return &kubemark.HollowKubelet{KubeletFlags: flags, KubeletConfiguration: config, KubeletDeps: deps}, nil
}

func (o nodeOptions) serve(config *kubeletconfig.KubeletConfiguration) {
	config.EnableServer, config.EnableDebuggingHandlers = true, true
	config.Address, config.Port = o.nodeIP, int32(o.port)
	config.Authentication.Anonymous.Enabled, config.Authentication.Webhook.Enabled = false, false
	config.Authentication.X509.ClientCAFile = o.clientCA
	config.Authorization.Mode = kubeletconfig.KubeletAuthorizationModeAlwaysAllow
}

// unconfined removes seccomp profiles: kubelets ask for the default for each pod's sandbox, and this runc,
// without libseccomp, would refuse it.
type unconfined struct{ internalapi.RuntimeService }

func (u unconfined) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	if c := config.GetLinux().GetSecurityContext(); c != nil {
		c.Seccomp = &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}
	}
	return u.RuntimeService.RunPodSandbox(ctx, config, handler)
}

func (u unconfined) CreateContainer(ctx context.Context, sandbox string, config *runtimeapi.ContainerConfig, of *runtimeapi.PodSandboxConfig) (string, error) {
	if c := config.GetLinux().GetSecurityContext(); c != nil {
		c.Seccomp = &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}
	}
	return u.RuntimeService.CreateContainer(ctx, sandbox, config, of)
}

func awaitSocket(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, runtimeStartTimeout)
	defer cancel()
	for {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "unix", path)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (o nodeOptions) importImages(ctx context.Context) error {
	archives, err := filepath.Glob(filepath.Join(o.runtimeDir, "images", "*.tar"))
	if err != nil {
		return fmt.Errorf("images of the node: %w", err)
	}
	done := filepath.Join(o.rootDir, "images")
	if err := os.MkdirAll(done, 0o755); err != nil {
		return fmt.Errorf("images of the node: %w", err)
	}
	for _, archive := range archives {
		mark := filepath.Join(done, filepath.Base(archive))
		if _, err := os.Stat(mark); err == nil {
			continue
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("images of the node: %w", err)
		}
		cmd := exec.CommandContext(ctx, filepath.Join(o.runtimeDir, "ctr"), "--address", o.runtime, "--namespace", "k8s.io", "images", "import", archive)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("import of image %s: %w: %s", archive, err, strings.TrimSpace(string(out)))
		}
		if err := os.WriteFile(mark, nil, 0o644); err != nil {
			return fmt.Errorf("images of the node: %w", err)
		}
	}
	return nil
}

type confined struct {
	cm.ContainerManager
	cgroup string
}

func (c confined) NewPodContainerManager() cm.PodContainerManager {
	return confinedPods{c.ContainerManager.NewPodContainerManager(), c.cgroup}
}

type confinedPods struct {
	cm.PodContainerManager
	cgroup string
}

func (p confinedPods) GetPodContainerName(*corev1.Pod) (cm.CgroupName, string) {
	return cm.CgroupName{p.cgroup}, "/" + p.cgroup
}

// realMachine has the real file system's size: when it is full, images are removed.
type realMachine struct {
	machine
	dir string
}

func (m realMachine) fsInfo() (cadvisorapi.FsInfo, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(m.dir, &s); err != nil {
		return cadvisorapi.FsInfo{}, fmt.Errorf("file system of %s: %w", m.dir, err)
	}
	size := uint64(s.Bsize)
	return cadvisorapi.FsInfo{
		Timestamp: time.Now(), Device: "disk", Mountpoint: "/",
		Capacity: s.Blocks * size, Available: s.Bavail * size, Usage: (s.Blocks - s.Bfree) * size,
		Inodes: &s.Files, InodesFree: &s.Ffree,
	}, nil
}

// The node's summary asks for its root cgroup; ContainerInfoV2 has only the time.
func (m realMachine) ContainerInfoV2(name string, _ cadvisorapi.RequestOptions) (map[string]cadvisorapi.ContainerInfo, error) {
	now := time.Now()
	return map[string]cadvisorapi.ContainerInfo{name: {Stats: []*cadvisorapi.ContainerStats{{Timestamp: now}}}}, nil
}

func (m realMachine) ImagesFsInfo(context.Context) (cadvisorapi.FsInfo, error) { return m.fsInfo() }

func (m realMachine) RootFsInfo() (cadvisorapi.FsInfo, error) { return m.fsInfo() }

func (m realMachine) ContainerFsInfo(context.Context) (cadvisorapi.FsInfo, error) { return m.fsInfo() }

func (m realMachine) GetDirFsInfo(string) (cadvisorapi.FsInfo, error) { return m.fsInfo() }
