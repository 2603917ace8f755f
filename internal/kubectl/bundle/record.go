// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/internal/kubectl/archive"
	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// settle is how long changes are gathered before they are written: one attach changes half a
// dozen objects within it.
const settle = 200 * time.Millisecond

// relist is how long a resource that must be listed anew waits for that.
const relist = 2 * time.Second

// name is that of an object.
type name struct{ namespace, name string }

func nameOf(object map[string]any) name {
	u := unstructured.Unstructured{Object: object}
	return name{u.GetNamespace(), u.GetName()}
}

// course is what was written of a resource's objects: what follows is written as changes of
// it. Only one goroutine uses it.
type course struct {
	resource
	version string
	known   map[name][]byte
}

// Record writes a bundle without logs and reports, and then what changes, until ctx ends. It
// calls begun once the bundle is written: each change from then on will be. An error means
// that the file can't be written, or that nothing at all could be read.
func Record(ctx context.Context, c *cluster.Cluster, to io.Writer, begun func(), tell func(string, ...any)) error {
	x, err := newCollector(ctx, c, to, tell)
	if err != nil {
		return err
	}
	x.follows = true
	if err := x.everything(ctx); err != nil {
		return err
	}
	if err := errors.Join(x.to.AddJSON("about.json", x.about), x.to.Flush()); err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	r := &recorder{collector: x, watches: client, clock: c.Clock, last: x.about.Taken, changed: make(chan struct{}, 1), notReady: map[string]bool{}}
	ctx, stop := context.WithCancel(ctx)
	var followers sync.WaitGroup
	for _, of := range x.courses {
		if of.Resource == leaseResource {
			r.leases = of
			continue
		}
		for n, raw := range of.known {
			r.judge(of, n, raw)
		}
		followers.Go(func() { r.follow(ctx, of) })
	}
	begun()
	err = r.write(ctx)
	stop()
	followers.Wait()
	return errors.Join(err, x.to.Close())
}

// recorder writes what changes.
type recorder struct {
	*collector
	watches dynamic.Interface
	clock   func() time.Time
	leases  *course // nil where they may not be read
	last    time.Time

	mu       sync.Mutex // for what follows
	queue    []archive.Change
	notReady map[string]bool // nodes that are not
	fell     bool            // one has become so that was ready, since the Leases were read
	changed  chan struct{}
}

// follow tells what becomes of a resource until ctx ends.
func (r *recorder) follow(ctx context.Context, of *course) {
	for ctx.Err() == nil {
		err := r.watch(ctx, of)
		if apierrors.IsForbidden(err) {
			r.tell("changes of %s are not recorded: %v", of.Resource, err)
			return
		}
		for listed := false; !listed; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(relist):
			}
			listed = r.again(ctx, of, func(name) bool { return true }) == nil
		}
	}
}

// watch tells what becomes of a resource for as long as its watch can be resumed.
func (r *recorder) watch(ctx context.Context, of *course) error {
	ctx = klog.NewContext(ctx, klog.Logger{}) // what fails is tried again
	watcher, err := toolswatch.NewRetryWatcherWithContext(ctx, of.version, &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		o.LabelSelector = of.labels
		w, err := r.watches.Resource(of.GroupVersionResource).Namespace(of.namespace).Watch(ctx, o)
		if status := apierrors.APIStatus(nil); errors.As(err, &status) && (apierrors.IsResourceExpired(err) || apierrors.IsGone(err)) {
			too := status.Status()
			gone := watch.NewFakeWithChanSize(1, false)
			gone.Error(&too)
			return gone, nil
		}
		return w, err
	}})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}
		if event.Type == watch.Deleted {
			r.gone(of, nameOf(object.Object))
		} else if err := r.is(of, taken(of.resource, object, r.home)); err != nil {
			r.tell("not recorded: %v", err)
		}
	}
	return nil
}

// is tells of an object as it is.
func (r *recorder) is(of *course, object map[string]any) error {
	n := nameOf(object)
	raw, err := json.Marshal(object)
	if err != nil {
		return err
	}
	change := archive.Change{Resource: archive.ResourceName(of.GroupVersionResource), Namespace: n.namespace, Name: n.name}
	changed, err := change.Set(of.known[n], raw)
	if err != nil || !changed {
		return err
	}
	of.known[n] = raw
	r.judge(of, n, raw)
	r.add(change)
	return nil
}

// gone tells of an object that is no more.
func (r *recorder) gone(of *course, n name) {
	if of.known[n] == nil {
		return
	}
	delete(of.known, n)
	r.judge(of, n, nil)
	r.add(archive.Change{Resource: archive.ResourceName(of.GroupVersionResource), Namespace: n.namespace, Name: n.name, Gone: true})
}

func (r *recorder) add(change archive.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue = append(r.queue, change)
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// judge notes whether a node is ready; raw is nil for one that is no more.
func (r *recorder) judge(of *course, n name, raw []byte) {
	if of.Group != corev1.GroupName || of.Resource != "nodes" {
		return
	}
	var node corev1.Node
	is := raw != nil && json.Unmarshal(raw, &node) == nil && facts.AnyNotReady([]*corev1.Node{&node})
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fell = r.fell || is && !r.notReady[n.name]; is {
		r.notReady[n.name] = true
	} else {
		delete(r.notReady, n.name)
	}
}

// again lists a resource anew, and tells what has changed meanwhile of the objects that counts
// says are in the list.
func (r *recorder) again(ctx context.Context, of *course, counts func(name) bool) error {
	list := &objects{}
	version, err := r.list(ctx, of.resource, list)
	if err != nil {
		return err
	}
	there := map[name]bool{}
	for _, object := range list.all {
		n := nameOf(object)
		if !counts(n) {
			continue
		}
		there[n] = true
		if err := r.is(of, object); err != nil {
			return err
		}
	}
	for n := range of.known {
		if counts(n) && !there[n] {
			r.gone(of, n)
		}
	}
	of.version = version
	return nil
}

// objects are those of a list.
type objects struct{ all []map[string]any }

func (l *objects) begin(string, string)      {}
func (l *objects) add(object map[string]any) { l.all = append(l.all, object) }
func (l *objects) problem() error            { return nil }
func (l *objects) restart() error            { l.all = nil; return nil }

const leaseResource = "leases"

// readLeases tells of Leases as cluster.Follow reads them, since each is written every few
// seconds and only what they tell changes rarely: those of components, and those of nodes that
// are not ready. What may not be read is left out.
func (r *recorder) readLeases(ctx context.Context) {
	r.mu.Lock()
	r.fell = false
	nodes := len(r.notReady) > 0
	r.mu.Unlock()
	if r.leases == nil {
		return
	}
	of := *r.leases // which shares what is known
	of.fields = fields.OneTermNotEqualSelector("metadata.namespace", corev1.NamespaceNodeLease).String()
	_ = r.again(ctx, &of, func(n name) bool { return n.namespace != corev1.NamespaceNodeLease }) // what is silent is read again
	if !nodes {
		return
	}
	of.fields = fields.OneTermEqualSelector("metadata.namespace", corev1.NamespaceNodeLease).String()
	_ = r.again(ctx, &of, func(n name) bool { // the same
		r.mu.Lock()
		defer r.mu.Unlock()
		return n.namespace == corev1.NamespaceNodeLease && r.notReady[n.name]
	})
}

// write writes what changes until ctx ends, and then that it has ended.
func (r *recorder) write(ctx context.Context) error {
	again := time.NewTicker(cluster.LeasesAgain)
	defer again.Stop()
	for ctx.Err() == nil {
		due := false
		select {
		case <-ctx.Done():
		case <-again.C:
			due = true
		case <-r.changed:
			select {
			case <-ctx.Done():
			case <-time.After(settle):
			}
		}
		if err := r.flush(ctx, due); err != nil {
			return err
		}
	}
	return r.to.AddChanges(r.now(), nil)
}

// flush writes what has changed. Where a node has become not ready, the Leases are read first:
// they say whether its kubelet lives.
func (r *recorder) flush(ctx context.Context, due bool) error {
	at := r.now()
	r.mu.Lock()
	due = due || r.fell
	r.mu.Unlock()
	if due {
		r.readLeases(ctx)
	}
	r.mu.Lock()
	list := r.queue
	r.queue = nil
	r.mu.Unlock()
	if len(list) == 0 {
		return nil
	}
	return r.to.AddChanges(at, list)
}

// now is the API server's time, which does not go back.
func (r *recorder) now() time.Time {
	if now := r.clock().UTC().Truncate(time.Millisecond); now.After(r.last) {
		r.last = now
	}
	return r.last
}
