// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	schedulingv1alpha1 "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
)

// PodGroupLabel names a pod's PodGroup of sigs.k8s.io/scheduler-plugins, in its namespace.
const PodGroupLabel = schedulingv1alpha1.PodGroupLabel

// DefaultGroupTimeout is for PodGroups without scheduleTimeoutSeconds
// (sigs.k8s.io/scheduler-plugins, pkg/util, DefaultWaitTime).
const DefaultGroupTimeout = 60 * time.Second

// podGroup is of either kind.
type podGroup struct {
	minMember int           // the least number placed together
	timeout   time.Duration // how long they wait for each other
}

type groupKey struct {
	namespace, name string
	// native: of Kubernetes (scheduling.k8s.io). kube-scheduler itself tries its pods together once there
	// are enough.
	native bool
}

func (k groupKey) String() string { return k.namespace + "/" + k.name }

// an empty name: none.
func groupOf(pod *corev1.Pod) groupKey {
	if own := pod.Spec.SchedulingGroup; own != nil && own.PodGroupName != nil {
		return groupKey{pod.Namespace, *own.PodGroupName, true}
	}
	return groupKey{pod.Namespace, pod.Labels[PodGroupLabel], false}
}

// groupSource has the PodGroups of sigs.k8s.io/scheduler-plugins. Safe for parallel use.
type groupSource interface {
	// get returns a PodGroup as last seen. Its error tells users why it is unknown.
	get(groupKey) (podGroup, error)
	// notify has f called for changed PodGroups. Call it before get.
	notify(f func(groupKey))
}

func (g *groups) group(key groupKey) (podGroup, error) {
	if !key.native {
		return g.source.get(key)
	}
	manager := g.core.handle.PodGroupManager()
	if manager == nil {
		return podGroup{}, fmt.Errorf("PodGroup %s can't be read", key)
	}
	found, err := manager.PodGroups().Get(key.namespace, key.name)
	if err != nil {
		return podGroup{}, fmt.Errorf("PodGroup %s: %w", key, err)
	}
	return podGroup{minMember: minCount(found), timeout: DefaultGroupTimeout}, nil
}

// minCount is 1 if the pods are placed one by one.
func minCount(group *schedulingv1beta1.PodGroup) int {
	if gang := group.Spec.SchedulingPolicy.Gang; gang != nil {
		return int(gang.MinCount)
	}
	return 1
}

// groupInformer starts after the first pod names a PodGroup: not all clusters have the kind, and an
// informer of a missing kind fails forever.
type groupInformer struct {
	ctx      context.Context // ends with the process
	informer cache.SharedIndexInformer
	begin    sync.Once
	failed   atomic.Pointer[error] // of the last list or watch, until a success
	changed  func(groupKey)        // set by notify

	mu     sync.Mutex
	unread []groupKey // before PodGroups were read
}

var errGroupsUnread = errors.New("PodGroups are still being read")

func newGroupInformer(ctx context.Context, client dynamic.Interface) (*groupInformer, error) {
	kind := schedulingv1alpha1.SchemeGroupVersion.WithResource("podgroups")
	i := &groupInformer{ctx: ctx, informer: dynamicinformer.NewFilteredDynamicInformer(client, kind, "", 0, cache.Indexers{}, nil).Informer()}
	if err := i.informer.SetTransform(typedGroup); err != nil {
		return nil, err
	}
	return i, i.informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { i.failed.Store(&err) })
}

func typedGroup(object any) (any, error) {
	given, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	group := &schedulingv1alpha1.PodGroup{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(given.Object, group); err != nil {
		return nil, fmt.Errorf("PodGroup %s/%s can't be read: %w", given.GetNamespace(), given.GetName(), err)
	}
	return group, nil
}

func (i *groupInformer) get(key groupKey) (podGroup, error) {
	i.begin.Do(func() {
		go i.informer.RunWithContext(i.ctx)
		go i.tellUnread()
	})
	known := i.known(key)
	found, exists, _ := i.informer.GetStore().GetByKey(key.String()) // this store never fails
	group, ok := found.(*schedulingv1alpha1.PodGroup)
	switch {
	case exists && ok:
		return podGroup{minMember: int(group.Spec.MinMember), timeout: timeoutOf(group)}, nil
	case known:
		return podGroup{}, fmt.Errorf("PodGroup %s does not exist", key)
	}
	if failed := i.failed.Load(); failed != nil {
		return podGroup{}, fmt.Errorf("PodGroup %s can't be read: %w", key, *failed)
	}
	return podGroup{}, fmt.Errorf("PodGroup %s is not known: %w", key, errGroupsUnread)
}

// known says whether PodGroups have been read. If not, pods that asked are told after the read: a missing
// PodGroup has no event.
func (i *groupInformer) known(key groupKey) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.informer.HasSynced() {
		return true
	}
	if !slices.Contains(i.unread, key) {
		i.unread = append(i.unread, key)
	}
	return false
}

func (i *groupInformer) tellUnread() {
	if !cache.WaitForCacheSync(i.ctx.Done(), i.informer.HasSynced) {
		return
	}
	i.mu.Lock()
	unread := i.unread
	i.unread = nil
	i.mu.Unlock()
	for _, key := range unread {
		if i.changed != nil {
			i.changed(key)
		}
	}
}

func (i *groupInformer) notify(f func(groupKey)) {
	i.changed = f
	changed := func(object any) {
		if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = last.Obj
		}
		if group, ok := object.(*schedulingv1alpha1.PodGroup); ok {
			f(groupKey{namespace: group.Namespace, name: group.Name})
		}
	}
	// It fails only for an ended informer.
	_, _ = i.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: changed, UpdateFunc: func(_, updated any) { changed(updated) }, DeleteFunc: changed,
	})
}

func timeoutOf(g *schedulingv1alpha1.PodGroup) time.Duration {
	if s := g.Spec.ScheduleTimeoutSeconds; s != nil && *s > 0 {
		return time.Duration(*s) * time.Second
	}
	return DefaultGroupTimeout
}
