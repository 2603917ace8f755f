// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/translate"
)

const (
	// leaseInterval is how often the Leases of nodes that are not Ready are read: a
	// kubelet renews its own every 10 s (a quarter of nodeLeaseDurationSeconds, 40 s).
	leaseInterval = 5 * time.Second
	// maxSingleLeases is for how many such nodes the Leases are read one by one. For
	// more, all Leases of the cluster are listed.
	maxSingleLeases = 20
)

// readLeasesFirst reads the Leases before anything is decided, so that what earlier
// leaders have measured is known again at once, and says whether that failed. Who waits
// for the caches does not wait for Leases longer than this: what is not known of them
// frees nothing.
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
	last := o.wall()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if now := o.wall(); now.Sub(last) >= 2*leaseInterval {
				o.leasesUnread(ctx, o.notReady()) // this process was stopped
			}
			failing = o.tryLeases(ctx, failing)
			last = o.wall()
		}
	}
}

// wall is the time by a clock that goes on while the machine is suspended.
func (o *Observer) wall() time.Time { return o.config.Now().Round(0) }

// notReady are the nodes whose Leases are read.
func (o *Observer) notReady() []ledger.NodeName {
	var names []ledger.NodeName
	for n := range o.Snapshot().Nodes() {
		if n.Exists && n.Ready != ledger.ReadyTrue {
			names = append(names, n.Name)
		}
	}
	return names
}

// readLeases takes in the Leases of all nodes that are not Ready, as they are now.
// One that can't be read is left out, and part of the error.
func (o *Observer) readLeases(ctx context.Context) error {
	names := o.notReady()
	if len(names) > maxSingleLeases {
		return o.listLeases(ctx, names)
	}
	var errs []error
	for _, name := range names {
		errs = append(errs, o.readLease(ctx, name))
	}
	return errors.Join(errs...)
}

func (o *Observer) readLease(ctx context.Context, name ledger.NodeName) error {
	lease, err := o.config.Kube.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, string(name), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		o.Apply(ledger.NodeLease{Node: name})
	case err != nil:
		if !answered(err) {
			o.leasesUnread(ctx, []ledger.NodeName{name})
		}
		return fmt.Errorf("read the Lease of node %s: %w", name, err)
	default:
		o.Apply(translate.NodeLease(lease))
	}
	return nil
}

// answered says whether the API server answers, though it does not let the Lease be read: it would answer
// a kubelet, too.
func answered(err error) bool {
	status := apierrors.APIStatus(nil)
	return errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError && !apierrors.IsTooManyRequests(err)
}

// leasesUnread has the ledger know that Leases could not be read, unless nobody waits for that any more.
func (o *Observer) leasesUnread(ctx context.Context, names []ledger.NodeName) {
	for _, name := range names {
		if !errors.Is(ctx.Err(), context.Canceled) {
			o.Apply(ledger.LeaseUnread{Node: name})
		}
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
			o.Apply(translate.NodeLease(lease))
		}
		return nil
	})
	if err != nil {
		if !answered(err) {
			o.leasesUnread(ctx, slices.Collect(maps.Keys(missing)))
		}
		return fmt.Errorf("list the Leases of nodes: %w", err)
	}
	for name := range missing {
		o.Apply(ledger.NodeLease{Node: name})
	}
	return nil
}
