// SPDX-License-Identifier: Apache-2.0

package web

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

const disk = "disk.example.com"

// Times are ages.
type builder struct {
	s   *apiServer
	now time.Time
}

func (b builder) ago(d time.Duration) string { return b.now.Add(-d).UTC().Format(time.RFC3339) }

func unique(handle string) string { return "kubernetes.io/csi/" + disk + "^" + handle }

func (b builder) node(name string, slots int, notReady time.Duration, handles ...string) {
	inUse, attached := []any{}, []any{}
	for _, h := range handles {
		inUse = append(inUse, unique(h))
		attached = append(attached, object{"name": unique(h), "devicePath": ""})
	}
	ready := object{"type": "Ready", "status": "True", "lastTransitionTime": b.ago(24 * time.Hour)}
	if notReady > 0 {
		ready = object{"type": "Ready", "status": "Unknown", "lastTransitionTime": b.ago(notReady), "message": "Kubelet stopped posting node status."}
	}
	b.s.put(object{"apiVersion": "v1", "kind": "Node", "metadata": object{"name": name, "uid": "node-" + name,
		"labels": object{"topology.kubernetes.io/zone": "zone-" + string("abc"[int(name[len(name)-1])%3])}, "annotations": object{"volumes.kubernetes.io/controller-managed-attach-detach": "true"}},
		"status": object{"conditions": []any{ready}, "volumesInUse": inUse, "volumesAttached": attached}},
		object{"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": object{"name": name, "uid": "csinode-" + name},
			"spec": object{"drivers": []any{object{"name": disk, "nodeID": name, "allocatable": object{"count": slots}}}}})
}

func (b builder) volume(namespace, claim, handle string) {
	pv := "pv-" + handle
	b.s.put(object{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": object{"name": pv, "uid": pv},
		"spec": object{"capacity": object{"storage": "1Gi"}, "accessModes": []any{"ReadWriteOnce"}, "storageClassName": "disk",
			"csi": object{"driver": disk, "volumeHandle": handle}, "claimRef": object{"namespace": namespace, "name": claim, "uid": "pvc-" + claim}},
		"status": object{"phase": "Bound"}},
		object{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": object{"namespace": namespace, "name": claim, "uid": "pvc-" + claim},
			"spec": object{"accessModes": []any{"ReadWriteOnce"}, "storageClassName": "disk", "volumeName": pv}, "status": object{"phase": "Bound"}})
}

func attachmentName(handle, node string) string {
	sum := sha256.Sum256([]byte(handle + disk + node))
	return "csi-" + hex.EncodeToString(sum[:])
}

// leaving is the time since the deletion; zero: none.
func (b builder) attach(handle, node string, age, leaving time.Duration) {
	meta := object{"name": attachmentName(handle, node), "uid": "va-" + handle + node, "creationTimestamp": b.ago(age)}
	if leaving > 0 {
		meta["deletionTimestamp"] = b.ago(leaving)
		meta["finalizers"] = []any{"external-attacher/" + disk}
	}
	b.s.put(object{"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": meta,
		"spec":   object{"attacher": disk, "nodeName": node, "source": object{"persistentVolumeName": "pv-" + handle}},
		"status": object{"attached": true}})
}

func (b builder) pod(namespace, name, node, phase, claim string, age, terminating time.Duration) {
	meta := object{"namespace": namespace, "name": name, "uid": "pod-" + namespace + name, "creationTimestamp": b.ago(age)}
	if terminating > 0 {
		meta["deletionTimestamp"] = b.ago(terminating)
	}
	scheduled := object{"type": "PodScheduled", "status": "True", "lastTransitionTime": b.ago(age)}
	if node == "" {
		scheduled["status"] = "False"
	}
	b.s.put(object{"apiVersion": "v1", "kind": "Pod", "metadata": meta,
		"spec": object{"schedulerName": "moorage-scheduler", "nodeName": node,
			"containers": []any{object{"name": "main", "volumeMounts": []any{object{"name": "v", "mountPath": "/v"}}}},
			"volumes":    []any{object{"name": "v", "persistentVolumeClaim": object{"claimName": claim}}}},
		"status": object{"phase": phase, "conditions": []any{scheduled}}})
}

func (b builder) hold(handle, holder, reason, message, nextNode, nextPod string) {
	sum := sha256.Sum256(append(binary.BigEndian.AppendUint64(nil, uint64(len(disk))), disk+handle...))
	b.s.put(object{"apiVersion": "moorage.dev/v1alpha1", "kind": "VolumeHold", "metadata": object{"name": "vh-" + hex.EncodeToString(sum[:20]), "uid": "vh-" + handle},
		"spec": object{"driver": disk, "handle": handle},
		"status": object{"persistentVolumes": []any{"pv-" + handle}, "transitions": 3, "holder": object{"node": holder, "nodeUID": "node-" + holder},
			"next":       object{"node": nextNode, "nodeUID": "node-" + nextNode, "ticket": object{"kind": "Pod", "namespace": "shop", "name": nextPod, "uid": "pod-shop" + nextPod}},
			"conditions": []any{object{"type": "DetachPending", "status": "True", "reason": reason, "message": message, "lastTransitionTime": b.ago(2 * time.Minute)}}}})
}

func (b builder) shop() {
	apps := []string{"shop/orders", "shop/cart", "search/index", "metrics/tsdb", "mail/queue"}
	for n := range 36 {
		node := fmt.Sprintf("worker-%d", n+1)
		var handles []string
		count := (n*7 + 3) % 21
		if n == 4 {
			count = 24
		}
		for i := range count {
			handle := fmt.Sprintf("vol-%02d%02d", n+1, i)
			app := apps[(n+i)%len(apps)]
			namespace, name, _ := strings.Cut(app, "/")
			claim := fmt.Sprintf("data-%s-%d-%d", name, n+1, i)
			handles = append(handles, handle)
			b.volume(namespace, claim, handle)
			age := time.Duration(i+1) * time.Hour
			if (n+i)%17 == 9 { // nobody uses it any more
				b.attach(handle, node, age, 20*time.Second)
				continue
			}
			b.attach(handle, node, age, 0)
			b.pod(namespace, fmt.Sprintf("%s-%d-%d", name, n+1, i), node, "Running", claim, age, 0)
		}
		notReady := time.Duration(0)
		if n == 6 {
			notReady = 3 * time.Minute
		}
		b.node(node, 24, notReady, handles...)
	}
	b.handover()
	left := []string{"vol-db"}
	for i := 1; i < 12; i++ { // as many more volumes whose pods wait for the node that died
		pod, handle := fmt.Sprintf("db-%d", i), fmt.Sprintf("vol-db%d", i)
		b.moved("data-"+pod, handle, pod)
		left = append(left, handle)
	}
	b.node("worker-7", 24, 3*time.Minute, left...)
	for i := range 3 {
		claim := fmt.Sprintf("data-web-%d", i)
		b.volume("shop", claim, fmt.Sprintf("vol-new%d", i))
		b.pod("shop", fmt.Sprintf("web-%d", i), fmt.Sprintf("worker-%d", 10+i), "Pending", claim, 20*time.Second, 0)
	}
}

func (b builder) handover() {
	b.node("worker-7", 24, 3*time.Minute, "vol-db")
	b.moved("data-db-0", "vol-db", "db-0")
}

func (b builder) moved(claim, handle, pod string) {
	b.volume("shop", claim, handle)
	b.attach(handle, "worker-7", 5*time.Hour, 0)
	b.pod("shop", pod, "worker-9", "Pending", claim, 2*time.Minute, 0)
	b.hold(handle, "worker-7", "NodeUnreachable", "volume "+claim+" may be in use at worker-7, which is not ready. It is detached by force in 4m0s; at once when the node comes back, "+
		"or is known to be powered off and has the taint node.kubernetes.io/out-of-service", "worker-9", pod)
}
