// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	kubescheduler "k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	schedulingv1alpha1 "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/plugins/promptbinding"
	"github.com/moorage-dev/moorage/plugins/scheduler"
	"github.com/moorage-dev/moorage/plugins/volumehold"
)

const driver = "disk.example.com"

const patience = 30 * time.Second

// cluster is a real scheduler over a fake API. The test plays all other components.
type cluster struct {
	t         *testing.T
	kube      *fake.Clientset
	moorage   *moorage
	scheduler *kubescheduler.Scheduler
	version   atomic.Int64        // resourceVersion of the newest pod
	writing   sync.Mutex          // held during a write of a pod, after a look at its version
	said      map[string][]string // written reasons of PodScheduled, by pod
	kill      func()              // ends the scheduler, and waits for the end
}

func newScheduler(t *testing.T, kube *fake.Clientset, api *moorage, profiles ...config.KubeSchedulerProfile) (*kubescheduler.Scheduler, informers.SharedInformerFactory, error) {
	t.Helper()
	return newSchedulerIn(t.Context(), kube, api, profiles...)
}

func newSchedulerIn(ctx context.Context, kube *fake.Clientset, api *moorage, profiles ...config.KubeSchedulerProfile) (*kubescheduler.Scheduler, informers.SharedInformerFactory, error) {
	factory := informers.NewSharedInformerFactory(kube, 0)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: kube.EventsV1()})
	made, err := kubescheduler.New(ctx, kube, factory, nil, profile.NewRecorderFactory(broadcaster),
		kubescheduler.WithProfiles(profiles...),
		kubescheduler.WithKubeConfig(&rest.Config{}),
		kubescheduler.WithFrameworkOutOfTreeRegistry(runtime.Registry{
			volumehold.Name:    scheduler.Checked(volumehold.NewFactoryFor(api, api.groups)),
			promptbinding.Name: promptbinding.New,
		}))
	return made, factory, err
}

func podGroups() *dynamicfake.FakeDynamicClient {
	kinds := map[schema.GroupVersionResource]string{schedulingv1alpha1.SchemeGroupVersion.WithResource("podgroups"): "PodGroupList"}
	var groups []apiruntime.Object
	for _, name := range []string{"a", "b"} {
		groups = append(groups, podGroupOf(name, 2))
	}
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(apiruntime.NewScheme(), kinds, groups...)
}

func podGroupOf(name string, minMember int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": schedulingv1alpha1.SchemeGroupVersion.String(), "kind": "PodGroup",
		"metadata": map[string]any{"namespace": "shop", "name": name},
		"spec":     map[string]any{"minMember": minMember, "scheduleTimeoutSeconds": int64(600)},
	}}
}

func (c *cluster) podGroup(name string, minMember int64) {
	c.t.Helper()
	kind := schedulingv1alpha1.SchemeGroupVersion.WithResource("podgroups")
	if _, err := c.moorage.groups.Resource(kind).Namespace("shop").Create(c.t.Context(), podGroupOf(name, minMember), metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

func newCluster(t *testing.T, objects ...apiruntime.Object) *cluster {
	t.Helper()
	if err := scheduler.SetDefaults(); err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, kube: fake.NewClientset(), moorage: newMoorage(t), said: map[string][]string{}}
	c.add(objects...)
	own := map[string]bool{}
	for _, object := range objects {
		if object, ok := object.(*corev1.Node); ok {
			own[object.Name] = true
		}
	}
	for _, name := range []string{"n1", "n2", "n3"} {
		if c.add(csiNode(name, 1)); !own[name] {
			c.add(node(name))
		}
	}
	c.kube.PrependReactor("create", "pods", c.bind)
	c.kube.PrependReactor("patch", "pods", c.patch)
	c.lead(3)
	return c
}

func (c *cluster) lead(watches int64) {
	c.t.Helper()
	ctx, end := context.WithCancel(c.t.Context())
	made, factory, err := newSchedulerIn(ctx, c.kube, c.moorage, stockProfile(c.t), shippedProfile(c.t))
	if err != nil {
		c.t.Fatal(err)
	}
	c.scheduler = made
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	if err := made.WaitForHandlersSync(ctx); err != nil {
		c.t.Fatal(err)
	}
	c.eventually("the watches to be open", func() bool { return c.moorage.watches.Load() == watches })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		made.Run(ctx)
	}()
	c.kill = func() {
		end()
		<-ended
		factory.Shutdown()
	}
}

func (c *cluster) add(objects ...apiruntime.Object) {
	c.t.Helper()
	for _, object := range objects {
		if err := c.kube.Tracker().Add(object); err != nil {
			c.t.Fatal(err)
		}
	}
}

// bind fails the test if a pod with volumes is bound without the pod's version.
func (c *cluster) bind(action clienttesting.Action) (bool, apiruntime.Object, error) {
	create, ok := action.(clienttesting.CreateAction)
	if !ok || action.GetSubresource() != "binding" {
		return false, nil, nil
	}
	binding, ok := create.GetObject().(*corev1.Binding)
	if !ok {
		return false, nil, nil
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	found, err := c.kube.Tracker().Get(pods, binding.Namespace, binding.Name)
	if err != nil {
		return true, nil, err
	}
	pod := found.(*corev1.Pod).DeepCopy()
	switch v := binding.ResourceVersion; {
	case v == "" && pod.Spec.SchedulerName == v1alpha1.SchedulerName && len(pod.Spec.Volumes) > 0:
		c.t.Errorf("the request that binds pod %s names no version", pod.Name)
	case v != "" && v != pod.ResourceVersion:
		return true, nil, apierrors.NewConflict(pods.GroupResource(), pod.Name, errors.New("the pod has changed"))
	case binding.UID != "" && binding.UID != pod.UID, pod.Spec.NodeName != "":
		return true, nil, apierrors.NewConflict(pods.GroupResource(), pod.Name, errors.New("the pod is another, or is bound"))
	}
	pod.Spec.NodeName, pod.ResourceVersion = binding.Target.Name, c.nextVersion()
	return true, binding, c.kube.Tracker().Update(pods, pod, pod.Namespace)
}

// Beyond the fake's patch it checks the patch's version, and sets a new version.
func (c *cluster) patch(action clienttesting.Action) (bool, apiruntime.Object, error) {
	patch, ok := action.(clienttesting.PatchAction)
	if !ok {
		return false, nil, nil
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	var named corev1.Pod
	if err := json.Unmarshal(patch.GetPatch(), &named); err != nil {
		return true, nil, err
	}
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	current, err := c.kube.Tracker().Get(pods, patch.GetNamespace(), patch.GetName())
	if err != nil {
		return true, nil, err
	}
	if v := named.ResourceVersion; v != "" && v != current.(*corev1.Pod).ResourceVersion {
		return true, nil, apierrors.NewConflict(pods.GroupResource(), patch.GetName(), errors.New("the pod has changed"))
	}
	for _, condition := range named.Status.Conditions {
		if condition.Type == corev1.PodScheduled {
			c.said[patch.GetName()] = append(c.said[patch.GetName()], condition.Reason)
		}
	}
	handled, patched, err := clienttesting.ObjectReaction(c.kube.Tracker())(action)
	if err != nil {
		return handled, patched, err
	}
	pod := patched.(*corev1.Pod).DeepCopy()
	pod.ResourceVersion = c.nextVersion()
	return true, pod, c.kube.Tracker().Update(pods, pod, pod.Namespace)
}

func (c *cluster) nextVersion() string { return strconv.FormatInt(c.version.Add(1), 10) }

func (c *cluster) newPod(name, schedulerName, claim string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name), ResourceVersion: c.nextVersion()},
		Spec:       corev1.PodSpec{SchedulerName: schedulerName, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	if claim != "" {
		pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}
	}
	return pod
}

func (c *cluster) create(pod *corev1.Pod) *corev1.Pod {
	c.t.Helper()
	made, err := c.kube.CoreV1().Pods(pod.Namespace).Create(c.t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return made
}

func (c *cluster) pod(name, schedulerName string, withDisk bool) *corev1.Pod {
	c.t.Helper()
	if !withDisk {
		return c.create(c.newPod(name, schedulerName, ""))
	}
	c.add(disk(name)...)
	return c.create(c.newPod(name, schedulerName, name))
}

func (c *cluster) label(name, key, value string) {
	c.t.Helper()
	changed := node(name)
	changed.Labels = map[string]string{key: value}
	if _, err := c.kube.CoreV1().Nodes().Update(c.t.Context(), changed, metav1.UpdateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) full(name string) {
	c.t.Helper()
	if _, err := c.kube.StorageV1().CSINodes().Update(c.t.Context(), csiNode(name, 0), metav1.UpdateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) delete(pod *corev1.Pod) {
	c.t.Helper()
	if err := c.kube.CoreV1().Pods(pod.Namespace).Delete(c.t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) bound(pod *corev1.Pod) string {
	c.t.Helper()
	at := ""
	c.eventually("pod "+pod.Name+" to be bound", func() bool {
		found, err := c.kube.CoreV1().Pods(pod.Namespace).Get(c.t.Context(), pod.Name, metav1.GetOptions{})
		if err == nil {
			at = found.Spec.NodeName
		}
		return at != ""
	})
	return at
}

func (c *cluster) told(pod *corev1.Pod, want string) {
	c.t.Helper()
	last := ""
	c.t.Cleanup(func() {
		if c.t.Failed() {
			c.t.Logf("pod %s was told %q", pod.Name, last)
		}
	})
	c.eventually("pod "+pod.Name+" to be told "+want, func() bool {
		found, err := c.kube.CoreV1().Pods(pod.Namespace).Get(c.t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		for _, condition := range found.Status.Conditions {
			if condition.Type == corev1.PodScheduled {
				last = condition.Message
			}
		}
		return strings.Contains(last, want)
	})
}

func (c *cluster) eventually(what string, happens func() bool) {
	c.t.Helper()
	err := wait.PollUntilContextTimeout(c.t.Context(), time.Millisecond, patience, true, func(context.Context) (bool, error) {
		return happens(), nil
	})
	if err != nil {
		c.t.Fatalf("waited for %s: %v", what, err)
	}
}

func node(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("100")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

func csiNode(name string, slots int32) *storagev1.CSINode {
	return &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{
			Name: driver, NodeID: name, Allocatable: &storagev1.VolumeNodeResources{Count: &slots}}}},
	}
}

func disk(claim string) []apiruntime.Object {
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	return []apiruntime.Object{
		&corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pv-" + claim},
			Spec: corev1.PersistentVolumeSpec{
				AccessModes:            modes,
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: claim}},
				ClaimRef:               &corev1.ObjectReference{Namespace: "shop", Name: claim, UID: types.UID("claim-" + claim)},
			},
			Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
		},
		&corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: claim, UID: types.UID("claim-" + claim),
				Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}},
			Spec:   corev1.PersistentVolumeClaimSpec{VolumeName: "pv-" + claim, AccessModes: modes},
			Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
		},
	}
}
