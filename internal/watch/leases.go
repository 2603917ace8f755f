// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
)

const (
	// leaseInterval is how often the Leases of nodes that are not Ready are read: a
	// kubelet renews its own every 10 s (a quarter of nodeLeaseDurationSeconds, 40 s).
	leaseInterval = 5 * time.Second
	// maxSingleLeases is for how many such nodes the Leases are read one by one. For
	// more, all Leases of the cluster are listed.
	maxSingleLeases = 20
	// leaseTimeout is the longest wait for one of them.
	leaseTimeout = 2 * leaseInterval
)

// readLeasesFirst reads the Leases before anything is decided, so that earlier leaders' measurements
// are known again at once, and says whether that failed. The wait for the caches is not longer for
// Leases: unknown Leases free nothing.
func (o *Observer) readLeasesFirst(ctx context.Context) (failed bool) {
	ctx, cancel := context.WithTimeout(ctx, leaseInterval)
	defer cancel()
	return o.tryLeases(ctx, false)
}

// tryLeases reads the Leases, says whether that failed, and logs it if it did not before.
func (o *Observer) tryLeases(ctx context.Context, before bool) (failed bool) {
	err := o.readLeases(ctx)
	if err != nil && !before && !errors.Is(ctx.Err(), context.Canceled) {
		klog.FromContext(ctx).Error(err, "The Leases of nodes that are not Ready can't be read: the time for a forced detach stands still where Ready is False, and nothing goes on that an earlier leader has measured")
	}
	return err != nil
}

// pollLeases reads the Leases of nodes that are not Ready until ctx is done. An
// informer would bring every renewal of every node of the cluster.
func (o *Observer) pollLeases(ctx context.Context, failing bool) {
	tick := time.NewTicker(leaseInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			failing = o.tryLeases(ctx, failing)
		}
	}
}

// notReady are the nodes with Leases to read.
func (o *Observer) notReady() []ledger.NodeName {
	var names []ledger.NodeName
	for n := range o.Snapshot().Nodes() {
		if n.Exists && n.Ready != ledger.ReadyTrue {
			names = append(names, n.Name)
		}
	}
	return names
}

// readLeases takes in the present Leases of all nodes that are not Ready. An unreadable Lease is left
// out, and part of the error.
func (o *Observer) readLeases(ctx context.Context) error {
	names := o.notReady()
	if len(names) > maxSingleLeases {
		return o.listLeases(ctx, names)
	}
	// Side by side: a missing answer must not keep the others from being read.
	errs := make([]error, len(names))
	var reading sync.WaitGroup
	for i, name := range names {
		reading.Go(func() { errs[i] = o.readLease(ctx, name) })
	}
	reading.Wait()
	return errors.Join(errs...)
}

func (o *Observer) readLease(ctx context.Context, name ledger.NodeName) error {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	lease, err := o.config.Kube.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, string(name), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		o.leaseRead(ledger.NodeLease{Node: name})
	case err != nil:
		o.leasesUnread(ctx, err, name)
		return fmt.Errorf("read the Lease of node %s: %w", name, err)
	default:
		o.leaseRead(convert.NodeLease(lease))
	}
	return nil
}

// leaseRead has the ledger know what a Lease says and, where it was not read for longer than it ought to be,
// that: the API server did not answer, or answered late, or this process was stopped.
func (o *Observer) leaseRead(lease ledger.NodeLease) {
	if n := o.Snapshot().Node(lease.Node); n != nil {
		last := n.LeaseRead
		if n.NotReady.After(last) {
			last = n.NotReady
		}
		if !last.IsZero() && o.config.Now().Round(0).Sub(last.Round(0)) > ledger.LongUnread {
			o.Apply(ledger.LeaseUnread{Node: lease.Node})
		}
	}
	o.Apply(lease)
}

// leasesUnread tells the ledger that Leases could not be read, unless nothing depends on that any more.
// If the API server refuses them, it would still answer a kubelet. An overloaded API server says
// neither: kubelets' requests have a priority of their own.
func (o *Observer) leasesUnread(ctx context.Context, err error, names ...ledger.NodeName) {
	status := apierrors.APIStatus(nil)
	refused := errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError
	if errors.Is(ctx.Err(), context.Canceled) || apierrors.IsTooManyRequests(err) {
		return
	}
	for _, name := range names {
		o.Apply(ledger.LeaseUnread{Node: name, Refused: refused})
	}
}

// listLeases is readLease for many nodes at once.
func (o *Observer) listLeases(ctx context.Context, names []ledger.NodeName) error {
	missing := make(map[ledger.NodeName]bool, len(names))
	for _, name := range names {
		missing[name] = true
	}
	list := pager.New(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		opts.ResourceVersion = "" // consistent, not from a cache
		return o.config.Kube.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, opts)
	})
	list.PageSize = listPage
	err := list.EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		if lease, ok := object.(*coordinationv1.Lease); ok && missing[ledger.NodeName(lease.Name)] {
			delete(missing, ledger.NodeName(lease.Name))
			o.leaseRead(convert.NodeLease(lease))
		}
		return nil
	})
	if err != nil {
		o.leasesUnread(ctx, err, slices.Collect(maps.Keys(missing))...)
		return fmt.Errorf("list the Leases of nodes: %w", err)
	}
	for name := range missing {
		o.leaseRead(ledger.NodeLease{Node: name})
	}
	return nil
}
