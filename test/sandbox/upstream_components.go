// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"path/filepath"
	"slices"
)

const DriverName = "disk.moorage.dev"

const (
	tunedQPS     = "1000"
	tunedBurst   = "2000"
	tunedWorkers = "200"
)

// upstreamComponents is in the order of the starts. The scheduler is missing where Moorage's replaces it
// (stockScheduler).
func upstreamComponents(s *site) []component {
	list := []component{
		etcdComponent(s), diskComponent(s), apiServerComponent(s),
		controllerManagerComponent(s), attacherComponent(s),
	}
	if s.options.stockScheduler() {
		list = append(list, schedulerComponent(s))
	}
	list = append(list, operationComponents(s)...)
	if s.options.NetworkFences {
		list = append(list, csiAddonsComponent(s))
	}
	for i := range s.options.Nodes {
		list = append(list, nodeComponent(s, NodeName(i+1)))
	}
	return list
}

func etcdComponent(s *site) component {
	return component{name: Etcd, args: []string{
		"--data-dir=" + s.folder.file("etcd"),
		"--listen-client-url=http://" + s.etcdAddr,
		"--listen-peer-url=http://" + s.etcdPeerAddr,
	}}
}

func apiServerComponent(s *site) component {
	args := []string{
		"--etcd-servers=http://" + s.etcdAddr,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + s.apiPort,
		"--cert-dir=" + s.pki,
		"--tls-cert-file=" + s.apiCert.cert,
		"--tls-private-key-file=" + s.apiCert.key,
		"--token-auth-file=" + s.tokenFile,
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + s.signingKey,
		"--service-account-signing-key-file=" + s.signingKey,
		"--service-cluster-ip-range=10.0.0.0/24",
		"--endpoint-reconciler-type=none",
		"--allow-privileged=true",
		"--profiling=false",
		"--audit-policy-file=" + s.auditPolicy,
		"--audit-log-path=" + s.AuditLog(),
		"--audit-log-maxsize=1000000", // MB; a log that is rotated can't be read from a position on
	}
	if s.options.Real {
		args = append(args, "--kubelet-client-certificate="+s.kubeletClient.cert, "--kubelet-client-key="+s.kubeletClient.key,
			"--kubelet-preferred-address-types=InternalIP")
	}
	args = append(args, s.emulated()...)
	if s.options.ServiceProxy != "" {
		args = append(args, "--egress-selector-config-file="+s.egress)
	}
	return component{name: APIServer, args: args}
}

func (s *site) emulated() []string {
	if s.options.Kubernetes == "" {
		return nil
	}
	return []string{"--emulated-version=" + s.options.Kubernetes}
}

const withoutAttachDetach = "--controllers=*,-persistentvolume-attach-detach-controller"

const withoutElection = "--leader-elect=false"

func controllerManagerComponent(s *site) component {
	kubeconfig := s.kubeconfig(ControllerManager)
	args := []string{
		"--kubeconfig=" + kubeconfig,
		"--service-account-private-key-file=" + s.signingKey,
		"--root-ca-file=" + s.authority.certPath(),
		"--use-service-account-credentials=true",
		withoutElection,
		"--secure-port=0",
	}
	if grace := s.options.NodeMonitorGracePeriod; grace > 0 {
		args = append(args, "--node-monitor-grace-period="+grace.String())
	}
	if s.options.Mode == Standalone {
		args = append(args, withoutAttachDetach)
	}
	if s.options.Mode == UpstreamTuned || s.options.TuneControlPlane {
		args = append(args, "--kube-api-qps="+tunedQPS, "--kube-api-burst="+tunedBurst)
	}
	if s.options.TuneControlPlane {
		args = slices.DeleteFunc(args, func(arg string) bool { return arg == withoutElection })
		args = append(args, "--leader-elect=true")
		args = append(args, s.options.controllerElection()...)
	}
	args = append(args, s.emulated()...)
	return component{name: ControllerManager, identity: new(user("system:kube-controller-manager")), args: args, restart: true}
}

func (o Options) stockScheduler() bool {
	return o.Mode != Standalone || o.Extender || o.Bring != nil
}

const schedulerUser = "system:kube-scheduler"

func schedulerComponent(s *site) component {
	args := []string{"--kubeconfig=" + s.kubeconfig(Scheduler), withoutElection, "--secure-port=0"}
	if s.options.TuneControlPlane {
		args = append(args, "--kube-api-qps="+tunedQPS, "--kube-api-burst="+tunedBurst)
	}
	if s.options.Extender {
		args = []string{"--config=" + s.extendedConfig, "--secure-port=0"}
	}
	args = append(args, s.emulated()...)
	return component{name: Scheduler, identity: new(user(schedulerUser)), restart: true, args: args}
}

func diskComponent(s *site) component {
	args := operationArgs(s.options.Operations)
	if s.options.Real {
		args = append(args, "--real-dir="+s.disksDir())
	}
	if !s.options.Operations.On {
		args = append(args, "--kubeconfig="+s.kubeconfig(DiskService)) // of its provisioner
	}
	return component{
		name: DiskService, identity: new(serviceAccount(driverNamespace, "disk-service")),
		args: append(args,
			"--listen="+s.diskAddr,
			"--csi-endpoint=unix://"+s.csiSocket,
			"--driver="+DriverName,
			fmt.Sprintf("--slots=%d", s.options.Slots),
			fmt.Sprintf("--attach-latency=%s", s.options.AttachLatency),
			fmt.Sprintf("--detach-latency=%s", s.options.DetachLatency),
			fmt.Sprintf("--parallel=%d", s.options.DiskParallel),
			fmt.Sprintf("--lenient=%t", s.options.LenientDisks),
			fmt.Sprintf("--list-volumes=%t", s.options.ListVolumes),
			fmt.Sprintf("--volume-health=%t", s.options.VolumeHealth),
			fmt.Sprintf("--zones=%t", s.options.Zones > 0),
			"--state-dir="+s.folder.file("disks"),
		),
	}
}

func (s Shape) zone(name string) string {
	for i := range s.Nodes {
		if node := NodeName(i + 1); s.Zones > 0 && (name == node || name == SecondMachine(node)) {
			return fmt.Sprintf("zone-%d", i%s.Zones+1)
		}
	}
	return ""
}

// StaticPodNode runs the static pods. It is a single node, since each costs an inotify instance.
func StaticPodNode() string { return NodeName(1) }

// Without this file, the machine has booted anew.
func (s *site) bootFile(node string) string { return filepath.Join(s.nodes, node, "boot-id") }

func nodeComponent(s *site, name string) component {
	args := []string{
		"--name=" + name,
		"--kubeconfig=" + s.kubeconfig(name),
		"--root-dir=" + filepath.Join(s.nodes, name),
		fmt.Sprintf("--status-interval=%s", s.options.KubeletStatusInterval),
		fmt.Sprintf("--lease-duration=%s", s.options.leaseDuration()),
		"--driver=" + DriverName,
		fmt.Sprintf("--slots=%d", s.options.Slots),
		"--disk-url=http://" + s.diskAddr,
		"--node-ip=" + s.nodeIP,
		"--boot-id-file=" + s.bootFile(name),
	}
	if s.options.NetworkFences || s.options.NamedMachines {
		args = append(args, "--system-uuid=machine-of-"+name)
	}
	if zone := s.options.zone(name); zone != "" {
		args = append(args, "--zone="+zone)
	}
	args = append(args, nodeOperationArgs(s.options.Operations)...)
	if name == StaticPodNode() {
		args = append(args, "--static-pods="+filepath.Join(s.nodes, name, "static-pods"))
	}
	if s.options.SilentKubelets {
		args = append(args, "--events=false")
	}
	args = append(args, s.emulated()...)
	return realNode(s, component{name: name, command: nodeCommand, identity: new(node(name)), args: args})
}
