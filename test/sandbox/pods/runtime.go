// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/moorage-dev/moorage/test/sandbox/internal/supervise"
)

type Config struct {
	Namespace string
	Client    kubernetes.Interface
	APIServer string
	NodeDir   func(node string) string
	Dir       string
	Binary    func(image string) (string, error)
}

func (c Config) Validate() error {
	if c.Namespace == "" || c.Client == nil || c.APIServer == "" || c.NodeDir == nil || c.Dir == "" || c.Binary == nil {
		return errors.New("pods: every field of the configuration is needed")
	}
	return nil
}

// Runtime runs pods. Its methods are safe for parallel use.
type Runtime struct {
	config   Config
	procs    *supervise.Group
	jobs     sync.WaitGroup
	pods     corelisters.PodNamespaceLister
	services corelisters.ServiceLister

	mu      sync.Mutex
	running map[types.UID]*running
	proxy   string // URL by which processes reach Services; empty: they don't
	next    byte   // last byte of the next pod's address
	net     [2]byte
}

// running is immutable but for ended.
type running struct {
	pod   *corev1.Pod
	ip    string
	names []string
	stop  context.CancelFunc // ends containers that run to their end
}

func New(config Config) (*Runtime, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	pid := os.Getpid() // so that two runtimes on one machine have different addresses
	return &Runtime{
		config: config, procs: supervise.NewGroup(), running: map[types.UID]*running{},
		net: [2]byte{byte(64 + pid>>8%128), byte(pid)}, next: 1,
	}, nil
}

// Run runs pods until ctx is done, and returns when none of their processes is
// left.
func (r *Runtime) Run(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(r.config.Client, 0)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](100*time.Millisecond, time.Second))
	defer queue.ShutDown()
	informer := factory.Core().V1().Pods()
	add := func(object any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			queue.Add(key)
		}
	}
	_, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add, UpdateFunc: func(_, now any) { add(now) }, DeleteFunc: add,
	})
	if err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	r.mu.Lock()
	r.pods, r.services = informer.Lister().Pods(r.config.Namespace), factory.Core().V1().Services().Lister()
	r.mu.Unlock()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	stop := context.AfterFunc(ctx, queue.ShutDown)
	defer stop()
	for r.work(ctx, queue) {
	}
	r.procs.Close()
	r.jobs.Wait()
	return nil
}

func (r *Runtime) work(ctx context.Context, queue workqueue.TypedRateLimitingInterface[string]) bool {
	key, shutdown := queue.Get()
	if shutdown {
		return false
	}
	defer queue.Done(key)
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil || namespace != r.config.Namespace {
		return true
	}
	if err := r.sync(ctx, name); err != nil {
		r.note("pod %s: %v", name, err)
		queue.AddRateLimited(key)
		return true
	}
	queue.Forget(key)
	return true
}

func (r *Runtime) sync(ctx context.Context, name string) error {
	pod, err := r.pods.Get(name)
	if err != nil {
		pod = nil // it is gone
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for uid, p := range r.running {
		if p.pod.Name == name && (pod == nil || pod.UID != uid || pod.DeletionTimestamp != nil) {
			delete(r.running, uid)
			r.end(ctx, p)
		}
	}
	// The kubelet has mounted the volumes of a pod that it calls Running.
	if pod == nil || pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning || r.running[pod.UID] != nil {
		return nil
	}
	p, err := r.start(ctx, pod)
	if err != nil {
		return err
	}
	r.running[pod.UID] = p
	return nil
}

func (r *Runtime) end(ctx context.Context, p *running) {
	p.stop()
	grace := 30 * time.Second
	if seconds := p.pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
		grace = time.Duration(*seconds) * time.Second
	}
	for _, name := range p.names {
		r.jobs.Go(func() {
			if err := r.procs.Terminate(ctx, name, grace); err != nil {
				r.note("%v", err)
			}
		})
	}
}

func (r *Runtime) Launch(name, path string, args ...string) error {
	return r.procs.Launch(supervise.Spec{
		Name: name, Path: path, Args: args, Dir: r.config.Dir, Env: []string{"TMPDIR=" + r.config.Dir, "KUBECONFIG="},
		LogPath: filepath.Join(r.config.Dir, name+".log"), Restart: true,
	})
}

func (r *Runtime) Stop(ctx context.Context, name string) error { return r.procs.Kill(ctx, name) }

func (r *Runtime) StartAgain(name string) error { return r.procs.Start(name) }

// Failed is closed when a process ended again and again.
func (r *Runtime) Failed() <-chan struct{} { return r.procs.Failed() }

func (r *Runtime) Failure() error { return r.procs.Failure() }

func (r *Runtime) Pods(selector labels.Selector) map[*corev1.Pod]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[*corev1.Pod]string{}
	for _, p := range r.running {
		if selector.Matches(labels.Set(p.pod.Labels)) {
			out[p.pod] = p.ip
		}
	}
	return out
}

func (r *Runtime) Exactly(want int32, of *metav1.LabelSelector) (map[*corev1.Pod]string, error) {
	selector, err := metav1.LabelSelectorAsSelector(of)
	if err != nil {
		return nil, err
	}
	all := r.Pods(selector)
	if len(all) != int(want) {
		return nil, fmt.Errorf("%d pods run, want %d", len(all), want)
	}
	return all, nil
}

// KillAll ends all pods' processes at once with SIGKILL, and starts them again when all are gone. It
// returns their number.
func (r *Runtime) KillAll(ctx context.Context) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for _, p := range r.running {
		names = append(names, p.names...)
	}
	var killing sync.WaitGroup
	errs := make([]error, len(names))
	for i, name := range names {
		killing.Go(func() { errs[i] = r.procs.Kill(ctx, name) })
	}
	killing.Wait()
	for _, name := range names {
		errs = append(errs, r.procs.Start(name))
	}
	return len(names), errors.Join(errs...)
}

func (r *Runtime) AwaitReady(ctx context.Context, deployment string) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		if err := r.Failure(); err != nil {
			return false, err
		}
		last = r.ready(ctx, deployment)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("deployment %s is not ready: %w (logs are in %s)", deployment, errors.Join(err, last), r.config.Dir)
	}
	return nil
}

func (r *Runtime) ready(ctx context.Context, name string) error {
	d, err := r.config.Client.AppsV1().Deployments(r.config.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if d.Status.ObservedGeneration < d.Generation || d.Status.UpdatedReplicas != *d.Spec.Replicas || d.Status.Replicas != *d.Spec.Replicas {
		return fmt.Errorf("%d pods, %d of them new, want %d", d.Status.Replicas, d.Status.UpdatedReplicas, *d.Spec.Replicas)
	}
	all, err := r.Exactly(*d.Spec.Replicas, d.Spec.Selector)
	if err != nil {
		return err
	}
	for pod, ip := range all {
		if err := probe(ctx, pod, ip); err != nil {
			return fmt.Errorf("pod %s: %w", pod.Name, err)
		}
	}
	return nil
}

func (r *Runtime) note(format string, args ...any) {
	f, err := os.OpenFile(filepath.Join(r.config.Dir, "pods.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return // there is nowhere to say so
	}
	defer f.Close()
	fmt.Fprintf(f, time.Now().Format("15:04:05.000 ")+format+"\n", args...)
}
