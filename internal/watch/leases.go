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
	// leaseInterval is for the Leases of nodes that are not Ready. A kubelet renews its own every 10 s (a
	// quarter of nodeLeaseDurationSeconds, 40 s).
	leaseInterval = 5 * time.Second
	// For more than maxSingleLeases nodes, all Leases of the cluster are listed.
	maxSingleLeases = 20
	leaseTimeout    = 2 * leaseInterval
)

// readLeasesFirst restores earlier leaders' measurements before the first decision. It does not prolong the
// wait: unknown Leases free nothing.
func (o *Observer) readLeasesFirst(ctx context.Context) (failed bool) {
	ctx, cancel := context.WithTimeout(ctx, leaseInterval)
	defer cancel()
	return o.tryLeases(ctx, false)
}

// tryLeases logs a failure if the read before did not fail.
func (o *Observer) tryLeases(ctx context.Context, before bool) (failed bool) {
	err := o.readLeases(ctx)
	if err != nil && !before && !errors.Is(ctx.Err(), context.Canceled) {
		klog.FromContext(ctx).Error(err, "The Leases of nodes that are not Ready can't be read: the time for a forced detach stands still where Ready is False, and nothing goes on that an earlier leader has measured")
	}
	return err != nil
}

// pollLeases polls, since an informer would bring every renewal of every node.
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

func (o *Observer) notReady() []ledger.NodeName {
	var names []ledger.NodeName
	for n := range o.Snapshot().Nodes() {
		if n.Exists && n.Ready != ledger.ReadyTrue {
			names = append(names, n.Name)
		}
	}
	return names
}

// An unreadable Lease is left out, and part of the error.
func (o *Observer) readLeases(ctx context.Context) error {
	names := o.notReady()
	if len(names) > maxSingleLeases {
		return o.listLeases(ctx, names)
	}
	// Parallel: a missing answer must not delay the others.
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

// leaseRead tells the ledger of a Lease, and of a late read: the API server did not answer in time, or this
// process was stopped.
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

// leasesUnread tells the ledger of unreadable Leases, unless nothing depends on them any more. An API
// server that refuses them would still answer a kubelet. An overloaded API server says neither: kubelets'
// requests have their own priority.
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

func (o *Observer) listLeases(ctx context.Context, names []ledger.NodeName) error {
	missing := make(map[ledger.NodeName]bool, len(names))
	for _, name := range names {
		missing[name] = true
	}
	list := pager.New(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		opts.ResourceVersion = "" // consistent
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
