// SPDX-License-Identifier: Apache-2.0

package csiaddons

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/csi-addons/spec/lib/go/fence"
	"google.golang.org/grpc"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// The words of csi-addons' API, api/csiaddons/v1alpha1/networkfence_types.go, and of
// internal/controller/csiaddons/networkfence_controller.go.
const (
	finalizer       = "csiaddons.openshift.io/network-fence"
	stateFenced     = "Fenced"
	resultSucceeded = "Succeeded"
	resultFailed    = "Failed"
	fencedWords     = "fencing operation successful"
	unfencedWords   = "unfencing operation successful"
	noCIDRs         = "Failed to validate Networkfence parameters: required parameter spec.cidrs is not specified"
)

const workers = 10

type fences struct {
	options
	objects         dynamic.NamespaceableResourceInterface
	driver          fence.FenceControllerClient
	cached, classes cache.GenericLister
	queue           workqueue.TypedRateLimitingInterface[string]
}

func newFences(o options, objects dynamic.Interface, driver *grpc.ClientConn, cached, classes informers.GenericInformer) (*fences, error) {
	f := &fences{
		options: o, objects: objects.Resource(Resource("networkfences")), driver: fence.NewFenceControllerClient(driver),
		cached: cached.Lister(), classes: classes.Lister(), queue: newQueue(),
	}
	return f, handle(cached.Informer(), func(key string, before, after any) {
		if generation(before) != generation(after) {
			f.queue.Add(key)
		}
	})
}

func newQueue() workqueue.TypedRateLimitingInterface[string] {
	return workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
}

// generation is -1 if there is no object.
func generation(object any) int64 {
	if o, ok := object.(metav1.Object); ok && o != nil {
		return o.GetGeneration()
	}
	return -1
}

func (f *fences) run(ctx context.Context) {
	work(ctx, f.queue, func(ctx context.Context, key string) (time.Duration, error) { return 0, f.reconcile(ctx, key) })
}

// A failed key is tried again; a key with a time is looked at again after it.
func work(ctx context.Context, queue workqueue.TypedRateLimitingInterface[string], reconcile func(context.Context, string) (time.Duration, error)) {
	for range workers {
		go func() {
			for {
				key, ended := queue.Get()
				if ended {
					return
				}
				again, err := reconcile(ctx, key)
				switch {
				case err != nil:
					klog.FromContext(ctx).Info("Trying again", "object", key, "reason", err.Error())
					queue.AddRateLimited(key)
				case again > 0:
					queue.Forget(key)
					queue.AddAfter(key, again)
				default:
					queue.Forget(key)
				}
				queue.Done(key)
			}
		}()
	}
	<-ctx.Done()
	queue.ShutDown()
}

func (f *fences) reconcile(ctx context.Context, name string) error {
	object, err := f.cached.Get(name)
	if err != nil {
		return nil // it is gone
	}
	o := asTyped(object.(*unstructured.Unstructured))
	cidrs, found, _ := unstructured.NestedStringSlice(o.Object, "spec", "cidrs")
	if !found {
		return f.say(ctx, o, resultFailed, noCIDRs)
	}
	if err := f.isOurs(o); err != nil {
		return err
	}
	if o.GetDeletionTimestamp() != nil {
		o.SetFinalizers(slices.DeleteFunc(o.GetFinalizers(), func(name string) bool { return name == finalizer }))
		_, err := f.objects.Update(ctx, o, metav1.UpdateOptions{})
		return err
	}
	if !slices.Contains(o.GetFinalizers(), finalizer) {
		o.SetFinalizers(append(o.GetFinalizers(), finalizer))
		if o, err = f.objects.Update(ctx, o, metav1.UpdateOptions{}); err != nil {
			return f.fails(ctx, asTyped(object.(*unstructured.Unstructured)), fmt.Errorf("failed to add finalizer (%s) to NetworkFence resource (%s): %w", finalizer, name, err))
		}
	}
	state, _, _ := unstructured.NestedString(o.Object, "spec", "fenceState")
	if err := f.ask(ctx, state, cidrs); err != nil {
		return f.fails(ctx, o, err)
	}
	words := unfencedWords
	if state == stateFenced {
		words = fencedWords
	}
	return f.say(ctx, o, resultSucceeded, words)
}

func (f *fences) isOurs(o *unstructured.Unstructured) error {
	driver, _, _ := unstructured.NestedString(o.Object, "spec", "driver")
	if class, _, _ := unstructured.NestedString(o.Object, "spec", "networkFenceClassName"); class != "" {
		object, err := f.classes.Get(class)
		if err != nil {
			return fmt.Errorf("failed to get networkfenceclass with name %q due to error: %w", class, err)
		}
		driver, _, _ = unstructured.NestedString(object.(*unstructured.Unstructured).Object, "spec", "provisioner")
	}
	if driver != f.options.driver {
		return fmt.Errorf("failed to get networkfenceclient using driver %q due to error: no leader found", driver)
	}
	return nil
}

func (f *fences) ask(ctx context.Context, state string, texts []string) error {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	var cidrs []*fence.CIDR
	for _, text := range texts {
		cidrs = append(cidrs, &fence.CIDR{Cidr: text})
	}
	var err error
	if state == stateFenced {
		_, err = f.driver.FenceClusterNetwork(ctx, &fence.FenceClusterNetworkRequest{Cidrs: cidrs})
	} else {
		_, err = f.driver.UnfenceClusterNetwork(ctx, &fence.UnfenceClusterNetworkRequest{Cidrs: cidrs})
	}
	return err
}

func (f *fences) fails(ctx context.Context, o *unstructured.Unstructured, cause error) error {
	if err := f.say(ctx, o, resultFailed, cause.Error()); err != nil {
		klog.FromContext(ctx).Info("Failed to update status", "object", o.GetName(), "reason", err.Error())
	}
	return cause
}

func (f *fences) say(ctx context.Context, o *unstructured.Unstructured, result, message string) error {
	o = o.DeepCopy()
	status, _, _ := unstructured.NestedMap(o.Object, "status")
	if status == nil {
		status = map[string]any{}
	}
	status["result"], status["message"] = result, message
	o.Object["status"] = status
	_, err := f.objects.UpdateStatus(ctx, o, metav1.UpdateOptions{})
	return err
}

// csi-addons' Go type adds empty fields of a spec, unless they have omitempty and are pointers.
func asTyped(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	spec, _, _ := unstructured.NestedMap(o.Object, "spec")
	for field, empty := range map[string]any{"driver": "", "networkFenceClassName": "", "secret": map[string]any{}} {
		if _, found := spec[field]; !found {
			spec[field] = empty
		}
	}
	o.Object["spec"] = spec
	return o
}
