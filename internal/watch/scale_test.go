// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"context"
	"fmt"
	"os"
	goruntime "runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/watch"
)

// scale is a large cluster with perNode pods at each node, each with its own attached volume.
type scale struct{ nodes, perNode int }

func (s scale) volumes() int { return s.nodes * s.perNode }

const scaleDriver = "disk.csi.example.com"

const (
	itsNumber = "000000001"
	itsNode   = "000000002"
)

const scaleUID = "6f1c1d2e-3a4b-4c5d-8e9f-000"

func scaleMeta(prefix string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: prefix + itsNumber, UID: scaleUID + itsNumber, ResourceVersion: "1" + itsNumber,
		CreationTimestamp: metav1.Unix(1_760_000_000, 0), Labels: map[string]string{"app.kubernetes.io/name": "database", "shard": itsNumber},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl", Operation: "Apply", APIVersion: "v1", FieldsV1: &metav1.FieldsV1{}}},
	}
}

func scaleNamespaced(prefix string) metav1.ObjectMeta {
	m := scaleMeta(prefix)
	m.Namespace = "shop"
	return m
}

const itsAttachment = "csi-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func (s scale) attachmentName(volume int) []string {
	id := ledger.VolumeID{Driver: scaleDriver, Handle: fmt.Sprintf("vol-%09d", volume)}
	return []string{itsAttachment, ledger.AttachmentName(id, ledger.NodeName(fmt.Sprintf("worker-%09d", volume%s.nodes)))}
}

func slotNumber(slot int) string { return fmt.Sprintf("9%08d", slot) }

func (s scale) slotNumbers(node int) []string {
	var pairs []string
	for slot := range s.perNode {
		pairs = append(pairs, slotNumber(slot), fmt.Sprintf("%09d", slot*s.nodes+node))
	}
	return pairs
}

func (s scale) nodeStatus() corev1.NodeStatus {
	status := corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}
	for slot := range s.perNode {
		name := corev1.UniqueVolumeName("kubernetes.io/csi/" + scaleDriver + "^vol-" + slotNumber(slot))
		status.VolumesInUse = append(status.VolumesInUse, name)
		status.VolumesAttached = append(status.VolumesAttached, corev1.AttachedVolume{Name: name})
	}
	return status
}

func (s scale) kinds() map[string]scaleKind {
	kinds := map[string]scaleKind{
		"nodes": {count: s.nodes, also: s.slotNumbers, gvk: corev1.SchemeGroupVersion.WithKind("Node"), object: &corev1.Node{ObjectMeta: func() metav1.ObjectMeta {
			m := scaleMeta("worker-")
			m.Annotations = map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
			return m
		}(), Status: s.nodeStatus()}},
		"csinodes": {count: s.nodes, gvk: storagev1.SchemeGroupVersion.WithKind("CSINode"), object: &storagev1.CSINode{ObjectMeta: scaleMeta("worker-"), Spec: storagev1.CSINodeSpec{
			Drivers: []storagev1.CSINodeDriver{{Name: scaleDriver, NodeID: "i-" + itsNumber, Allocatable: &storagev1.VolumeNodeResources{Count: ptr.To[int32](128)}}},
		}}},
		"csidrivers": {count: 1, gvk: storagev1.SchemeGroupVersion.WithKind("CSIDriver"), object: &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: scaleDriver}}},
		"persistentvolumes": {count: s.volumes(), gvk: corev1.SchemeGroupVersion.WithKind("PersistentVolume"), object: &corev1.PersistentVolume{ObjectMeta: scaleMeta("pv-"), Spec: corev1.PersistentVolumeSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")},
			ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "data-" + itsNumber, UID: scaleUID + itsNumber},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: scaleDriver, VolumeHandle: "vol-" + itsNumber, VolumeAttributes: map[string]string{"partition": "0"}}},
		}}},
		"persistentvolumeclaims": {count: s.volumes(), gvk: corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), object: &corev1.PersistentVolumeClaim{ObjectMeta: scaleNamespaced("data-"), Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeName: "pv-" + itsNumber, StorageClassName: ptr.To("fast"),
		}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}},
		"volumeattachments": {count: s.volumes(), also: s.attachmentName, gvk: storagev1.SchemeGroupVersion.WithKind("VolumeAttachment"), object: &storagev1.VolumeAttachment{ObjectMeta: func() metav1.ObjectMeta {
			m := scaleMeta("csi-")
			m.Name = itsAttachment
			m.Finalizers = []string{"external-attacher/disk-csi-example-com"}
			m.Labels = map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}
			m.Annotations = map[string]string{convert.AnnotationNodeID: "i-" + itsNode, v1alpha1.AnnotationTransitions: "1"}
			return m
		}(), Spec: storagev1.VolumeAttachmentSpec{
			Attacher: scaleDriver, NodeName: "worker-" + itsNode, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("pv-" + itsNumber)},
		}, Status: storagev1.VolumeAttachmentStatus{Attached: true}}},
		"volumeholds": {count: s.volumes(), gvk: v1alpha1.SchemeGroupVersion.WithKind("VolumeHold"), object: scaleHold()},
		"pods": {count: s.volumes(), gvk: corev1.SchemeGroupVersion.WithKind("Pod"), object: &corev1.Pod{ObjectMeta: scaleNamespaced("db-"), Spec: corev1.PodSpec{
			NodeName: "worker-" + itsNode,
			Volumes: []corev1.Volume{
				{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + itsNumber}}},
				{Name: "kube-api-access", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}},
			},
			Containers: []corev1.Container{{Name: "db", Image: "registry.example.com/database:1", Args: []string{"--data=/data"},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}, {Name: "kube-api-access", MountPath: "/var/run/secrets"}}}},
			Tolerations: []corev1.Toleration{{Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](300)}},
		}, Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", ContainerStatuses: []corev1.ContainerStatus{{Name: "db", Ready: true}}}}},
	}
	for name, none := range map[string]runtime.Object{"storageclasses": &storagev1.StorageClass{}, "volumetickets": &v1alpha1.VolumeTicket{}, "attachpolicies": &v1alpha1.AttachPolicy{}} {
		kinds[name] = scaleKind{object: none, gvk: scaleNone(name)}
	}
	for _, k := range kinds {
		k.object.GetObjectKind().SetGroupVersionKind(k.gvk)
	}
	return kinds
}

func scaleHold() *v1alpha1.VolumeHold {
	claim := ledger.ClaimKey{Namespace: "shop", Name: "data-" + itsNumber}
	hold := convert.HoldObject(convert.HoldContext{
		Volume: ledger.VolumeID{Driver: scaleDriver, Handle: "vol-" + itsNumber}, Claim: claim, Now: time.Unix(1_760_000_000, 0),
	}, ledger.Hold{
		Node: ledger.NodeName("worker-" + itsNode), NodeUID: scaleUID + itsNode, Transitions: 1, State: ledger.HoldHeld, PVs: []string{"pv-" + itsNumber},
		Requesters: []ledger.Requester{{Namespace: "shop", Name: "db-" + itsNumber, UID: scaleUID + itsNumber}},
	})
	hold.ObjectMeta = scaleMeta("hold-")
	return hold
}

func scaleNone(name string) schema.GroupVersionKind {
	switch name {
	case "storageclasses":
		return storagev1.SchemeGroupVersion.WithKind("StorageClass")
	case "volumetickets":
		return v1alpha1.SchemeGroupVersion.WithKind("VolumeTicket")
	}
	return v1alpha1.SchemeGroupVersion.WithKind("AttachPolicy")
}

// In MiB; 0 if unknown (proc_pid_status(5), VmHWM).
func resident() float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	fields := strings.Fields(after)
	if len(fields) == 0 {
		return 0
	}
	kib, _ := strconv.ParseFloat(fields[0], 64)
	return kib / 1024
}

// The limit is nine tenths of a container's memory, as in the controller (keepWithin).
func memoryLimit(b *testing.B, gib int64) {
	before := debug.SetMemoryLimit(gib << 30 / 10 * 9)
	b.Cleanup(func() { debug.SetMemoryLimit(before) })
}

type started struct {
	scale
	*watch.Observer
	server *scaleServer
	stop   func()
}

func (s scale) start(b *testing.B) *started {
	server, url := startScaleServer(b, s)
	config := &rest.Config{Host: url, QPS: -1}
	own, err := client.NewForConfig(config)
	if err != nil {
		b.Fatal(err)
	}
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	observer, err := watch.New(watch.Config{Kube: kubernetes.NewForConfigOrDie(config), Moorage: own})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	began, spent, ended := time.Now(), cpuTime(b), make(chan struct{})
	go func() { defer close(ended); observer.Run(ctx) }()
	if err := observer.WaitForSync(ctx); err != nil {
		b.Fatal(err)
	}
	snapshot, attached := observer.Snapshot(), 0
	for v := range snapshot.Volumes() {
		rules.Arbiter{}.Plan(snapshot, v.ID, time.Now())
		if attached == 0 {
			b.ReportMetric(time.Since(began).Seconds(), "s-to-first-decision")
		}
		if p := v.OnNode(ledger.NodeName("worker-" + s.number(v.ID.Handle))); p != nil && p.Own() != nil && len(p.Users) > 0 {
			attached++
		}
	}
	b.ReportMetric(time.Since(began).Seconds(), "s-to-last-decision")
	b.ReportMetric((cpuTime(b) - spent).Seconds(), "cpu-s-to-last-decision")
	if attached != s.volumes() {
		b.Fatalf("%d volumes are attached where their pods are, of %d", attached, s.volumes())
	}
	return &started{scale: s, Observer: observer, server: server, stop: func() { cancel(); <-ended }}
}

func (s *started) reportMemory(b *testing.B) {
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	b.ReportMetric(float64(m.HeapAlloc)/(1<<20), "MiB-live")
	b.ReportMetric(resident(), "MiB-most")
	goruntime.KeepAlive(s.Observer)
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// 5,000 nodes with 100,000 attachments and pods, in a container with 1 GiB. The server's work is in the
// time.
func BenchmarkStart(b *testing.B) {
	memoryLimit(b, 1)
	for b.Loop() {
		s := scale{nodes: 5_000, perNode: 20}.start(b)
		s.reportMemory(b)
		s.stop()
	}
}

const slopeEvents = 20_000

// BenchmarkStart at three sizes with 40 volumes per node, in 4 GiB, and then changes of VolumeAttachments.
// Use a process per size: the peak memory is the process's.
func BenchmarkSlope(b *testing.B) {
	for _, nodes := range []int{1_000, 5_000, 15_000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			memoryLimit(b, 4)
			for b.Loop() {
				s := scale{nodes: nodes, perNode: 40}.start(b)
				s.reportMemory(b)
				b.ReportMetric(s.change(b, slopeEvents), "cpu-ns/event")
				s.stop()
			}
		})
	}
}

func (s *started) change(b *testing.B, n int) float64 {
	touched := make(chan ledger.VolumeID, n)
	s.Subscribe(func(t ledger.Touched) {
		for _, v := range t.Volumes {
			touched <- v
		}
	})
	spent := cpuTime(b)
	s.server.changes <- n
	for range n {
		id := <-touched
		rules.Arbiter{}.Plan(s.Snapshot(), id, time.Now())
	}
	return float64((cpuTime(b) - spent).Nanoseconds()) / float64(n)
}

func (s scale) number(handle string) string {
	n, _ := strconv.Atoi(strings.TrimLeft(strings.TrimPrefix(handle, "vol-"), "0"))
	return fmt.Sprintf("%09d", n%s.nodes)
}
