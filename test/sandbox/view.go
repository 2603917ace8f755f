// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	diskclient "github.com/moorage-dev/moorage/test/sandbox/disk/client"
)

func TicketResource() schema.GroupVersionResource { return moorageResource("volumetickets") }

func HoldResource() schema.GroupVersionResource { return moorageResource("volumeholds") }

func PolicyResource() schema.GroupVersionResource { return moorageResource("attachpolicies") }

func NodeMountReportResource() schema.GroupVersionResource {
	return moorageResource("nodemountreports")
}

func moorageResource(name string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "moorage.dev", Version: "v1alpha1", Resource: name}
}

// View's methods are safe for parallel use. The returned objects are shared and must not be changed.
type View struct {
	pods, nodes, claims, volumes, events cache.SharedIndexInformer
	attachments, csiNodes                cache.SharedIndexInformer
	deployments, statefulSets            cache.SharedIndexInformer
	tickets, holds                       cache.SharedIndexInformer // nil without Moorage
	nodeMountReport                      cache.SharedIndexInformer // nil without moorage-node
	snapshots, contents, groups          cache.SharedIndexInformer // nil without operations

	recorder recorder
	disk     journal

	mu      sync.Mutex
	changed chan struct{}
	seen    map[types.UID]*seenPod // pods that exist or existed
	claimed map[string]seenVolume  // by namespace/claim
}

// newView waits until the informers have listed everything.
func newView(ctx context.Context, client kubernetes.Interface, dyn dynamic.Interface, shape Shape, service diskclient.Client) (*View, error) {
	factory := informers.NewSharedInformerFactory(client, 0)
	v := &View{
		pods:         factory.Core().V1().Pods().Informer(),
		nodes:        factory.Core().V1().Nodes().Informer(),
		claims:       factory.Core().V1().PersistentVolumeClaims().Informer(),
		volumes:      factory.Core().V1().PersistentVolumes().Informer(),
		events:       factory.Core().V1().Events().Informer(),
		attachments:  factory.Storage().V1().VolumeAttachments().Informer(),
		csiNodes:     factory.Storage().V1().CSINodes().Informer(),
		deployments:  factory.Apps().V1().Deployments().Informer(),
		statefulSets: factory.Apps().V1().StatefulSets().Informer(),
		changed:      make(chan struct{}),
		seen:         map[types.UID]*seenPod{},
		claimed:      map[string]seenVolume{},
	}
	own := dynamicinformer.NewDynamicSharedInformerFactory(dyn, 0)
	if shape.MoorageNode {
		v.nodeMountReport = own.ForResource(NodeMountReportResource()).Informer()
	}
	if shape.Operations.On {
		v.snapshots = own.ForResource(SnapshotResource()).Informer()
		v.contents = own.ForResource(SnapshotContentResource()).Informer()
		v.groups = own.ForResource(GroupSnapshotResource()).Informer()
	}
	if shape.Mode.Moorage() {
		v.tickets = own.ForResource(TicketResource()).Informer()
		v.holds = own.ForResource(HoldResource()).Informer()
	}
	if err := v.record(); err != nil {
		return nil, err
	}
	for _, informer := range v.all() {
		if _, err := informer.AddEventHandler(v.handler()); err != nil {
			return nil, fmt.Errorf("observe the cluster: %w", err)
		}
		go informer.Run(ctx.Done())
	}
	go v.follow(ctx, service)
	for _, informer := range v.all() {
		if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			return nil, fmt.Errorf("observe the cluster: %w", context.Cause(ctx))
		}
	}
	return v, nil
}

func (v *View) record() error {
	handlers := map[cache.SharedIndexInformer][]cache.ResourceEventHandler{
		v.pods:        {handler(v.rememberPod), handler(v.recorder.pod)},
		v.volumes:     {handler(v.rememberVolume)},
		v.nodes:       {handler(v.recorder.node)},
		v.attachments: {handler(v.recorder.attachment)},
	}
	for informer, list := range handlers {
		for _, h := range list {
			if _, err := informer.AddEventHandler(h); err != nil {
				return fmt.Errorf("observe the cluster: %w", err)
			}
		}
	}
	return nil
}

func (v *View) all() []cache.SharedIndexInformer {
	list := []cache.SharedIndexInformer{
		v.pods, v.nodes, v.claims, v.volumes, v.events, v.attachments, v.csiNodes, v.deployments, v.statefulSets,
	}
	if v.tickets != nil {
		list = append(list, v.tickets, v.holds)
	}
	if v.nodeMountReport != nil {
		list = append(list, v.nodeMountReport)
	}
	if v.snapshots != nil {
		list = append(list, v.snapshots, v.contents, v.groups)
	}
	return list
}

func (v *View) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { v.signal() },
		UpdateFunc: func(any, any) { v.signal() },
		DeleteFunc: func(any) { v.signal() },
	}
}

func (v *View) signal() {
	v.mu.Lock()
	defer v.mu.Unlock()
	close(v.changed)
	v.changed = make(chan struct{})
}

// Changed returns a channel that closes at the next change after the call.
func (v *View) Changed() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.changed
}

// tick bounds the delay for a condition that can't be watched: the disk service's log, or a process.
const tick = 50 * time.Millisecond

// When ctx ends first, the error wraps check's last one.
func (v *View) Await(ctx context.Context, check func() error) error {
	timer := time.NewTicker(tick)
	defer timer.Stop()
	for {
		changed := v.Changed()
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

func list[T any](informer cache.SharedIndexInformer, namespace string) []T {
	if informer == nil {
		return nil
	}
	var out []T
	add := func(o any) {
		if t, ok := o.(T); ok {
			out = append(out, t)
		}
	}
	if namespace == "" {
		for _, o := range informer.GetStore().List() {
			add(o)
		}
		return out
	}
	objects, err := informer.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
	if err != nil {
		return nil // unreachable: every informer here has the namespace index
	}
	for _, o := range objects {
		add(o)
	}
	return out
}

func get[T any](informer cache.SharedIndexInformer, namespace, name string) *T {
	if informer == nil {
		return nil
	}
	key := name
	if namespace != "" {
		key = namespace + "/" + name
	}
	o, ok, err := informer.GetStore().GetByKey(key)
	if err != nil || !ok {
		return nil
	}
	t, _ := o.(*T)
	return t
}

func (v *View) Pods(namespace string) []*corev1.Pod { return list[*corev1.Pod](v.pods, namespace) }

func (v *View) Pod(namespace, name string) *corev1.Pod {
	return get[corev1.Pod](v.pods, namespace, name)
}

func (v *View) Nodes() []*corev1.Node { return list[*corev1.Node](v.nodes, "") }

func (v *View) Node(name string) *corev1.Node { return get[corev1.Node](v.nodes, "", name) }

func (v *View) CSINode(name string) *storagev1.CSINode {
	return get[storagev1.CSINode](v.csiNodes, "", name)
}

func (v *View) Claims(namespace string) []*corev1.PersistentVolumeClaim {
	return list[*corev1.PersistentVolumeClaim](v.claims, namespace)
}

func (v *View) Claim(namespace, name string) *corev1.PersistentVolumeClaim {
	return get[corev1.PersistentVolumeClaim](v.claims, namespace, name)
}

func (v *View) Volumes() []*corev1.PersistentVolume {
	return list[*corev1.PersistentVolume](v.volumes, "")
}

func (v *View) Volume(name string) *corev1.PersistentVolume {
	return get[corev1.PersistentVolume](v.volumes, "", name)
}

func (v *View) Events(namespace string) []*corev1.Event {
	return list[*corev1.Event](v.events, namespace)
}

func (v *View) Attachments() []*storagev1.VolumeAttachment {
	return list[*storagev1.VolumeAttachment](v.attachments, "")
}

func (v *View) Deployment(namespace, name string) *appsv1.Deployment {
	return get[appsv1.Deployment](v.deployments, namespace, name)
}

func (v *View) StatefulSet(namespace, name string) *appsv1.StatefulSet {
	return get[appsv1.StatefulSet](v.statefulSets, namespace, name)
}

func (v *View) Tickets(namespace string) []*unstructured.Unstructured {
	return list[*unstructured.Unstructured](v.tickets, namespace)
}

func (v *View) NodeMountReports(node string) *unstructured.Unstructured {
	return get[unstructured.Unstructured](v.nodeMountReport, "", node)
}

func (v *View) Holds() []*unstructured.Unstructured {
	return list[*unstructured.Unstructured](v.holds, "")
}
