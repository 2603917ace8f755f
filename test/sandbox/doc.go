// SPDX-License-Identifier: Apache-2.0

// Package sandbox runs a real Kubernetes cluster on this machine, without a
// container engine, and tells scenarios on it.
//
// # What is real
//
// etcd, kube-apiserver with RBAC and audit, kube-controller-manager,
// kube-scheduler or moorage-scheduler, kubelets (volume manager, CSI plugin,
// plugin registration, node status), external-attacher and CSI over gRPC are
// real. Containers are not: a pod is Running once its volumes are mounted and a
// fake runtime says that its containers have started. The disks behind the CSI
// driver are simulated by package disk, which judges every call it gets.
//
// With Shape.Operations the driver makes snapshots, group snapshots, clones and larger volumes, with
// the real sidecars: external-provisioner, which replaces package disk's own, external-snapshotter with
// its snapshot-controller, and external-resizer. An operation copies the numbers of flushed writes, not
// blocks; its duration is an option. The sidecars' request limits and longest backoffs are not the
// stock ones (operations.go says why).
//
// Nodes have no kubelet server, so `kubectl logs` and `kubectl exec` don't work. Kubelets write events
// if they can read the kernel's log (/dev/kmsg): without it they have no recorder. A node is one
// process: to kill it ends its kubelet, its CSI node plugin and its containers, and leaves its folder
// and its staged volumes, like a crash of the kubelet; to switch it off also takes the staged volumes,
// like a power failure. With Shape.MoorageNode each node has a moorage-node beside it, which outlives
// it. kube-controller-manager gives each of its controllers a service account of its own, as kubeadm
// sets it up, so that the audit log tells them apart.
//
// With Shape.Real nodes run containers and mount disks (docs/internals/real-nodes.md): each has a
// machine of its own, package real/machine, with containerd and a whole kubelet, and disks are files
// that are attached as loop devices, package disk/block. Killing such a node ends its kubelet and its
// CSI node plugin only.
//
// # What it costs
//
// On two cores, with everything built: three nodes are schedulable 6 s after the
// start, thirty after 10 s, a hundred after 24 s. Proportional set sizes add up
// to 0.6 GiB with three nodes, 1.1 GiB with thirty, 2.6 GiB with a hundred: about
// 25 MiB a node. A node takes one inotify instance; Linux allows a user 128 of
// them unless fs.inotify.max_user_instances says otherwise.
//
// # What it reads, who decides, what it writes
//
// Start reads Options, starts one process per component and node from a
// multi-call binary, and waits for the nodes. Everything is in one folder per
// cluster: keys, tokens, kubeconfigs, a log per component, the audit log.
// Nothing here decides anything about volumes, and nothing of Moorage is
// imported: its processes are commands of the multi-call binary (moorage_components.go
// lists them), and its manifests are handed in.
//
// Each component talks to the API server under its own identity and through a
// link of its own, so that it can be cut off alone. Killing the process that
// runs the cluster, however it is done, ends all others.
//
// # Writing a scenario
//
// A Scenario names the modes and the shape of the cluster it needs; its Run
// gets an Env:
//
//	func(ctx context.Context, e *sandbox.Env) error {
//		if err := e.CreateClaim(ctx, sandbox.Claim("data", corev1.ReadWriteOnce)); err != nil {
//			return err
//		}
//		if err := e.CreatePod(ctx, sandbox.Pod("db", "data")); err != nil {
//			return err
//		}
//		return e.Eventually(ctx, "the pod runs", func() error { return e.Running("db") })
//	}
//
// Act with the builders (Claim, Pod, Deployment, StatefulSet, …), with e.Client or e.Dynamic; break
// things with e.Cluster (Kill, StartAgain, Pause, PowerOff, Cut, …) and e.Disk (SetFault). Look at
// e.View, which are informer caches plus the disk service's log (View.Calls), and at e.Timeline. Wait
// with e.Eventually, never by time: its check is called whenever something changes, and an expectation
// that does not come true carries a diagnosis of the whole cluster. End a wait early with Never. To
// assert that something does not happen, wait for another event instead, then look at the history:
// View.Calls has every call to the disk service, e.Audit every request to the API server.
//
// Don't clean up. After Run the Runner heals the cluster, deletes the
// scenario's namespace, waits until nothing is left over (pods, claims,
// volumes, attachments, entries of node.status, disks), and fails the scenario
// if the judge saw a violation or a call of Moorage's was denied.
package sandbox
