// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/nodevolumes"
)

// nodeGetter reads the present Node.
type nodeGetter interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Node, error)
}

// unstager has a node's driver unstage a volume. It returns nil when the driver has answered that
// nothing of it is left at the path. Just before it sends the NodeUnstageVolume it calls calls: an
// earlier failure has no effect, then or later.
type unstager interface {
	Unstage(ctx context.Context, driver, handle, path string, calls func()) error
}

// removeWithin is how long after the driver's answer the kubelet's records may be removed: a process
// that was stopped in between does not know the mounts there by then.
const removeWithin = 5 * time.Second

// carryOut carries out the announced orders, side by side: a hanging driver delays no other volume, nor
// a look. All read the Node once, after that was written: the client lets few requests through at a
// time.
func (a *agent) carryOut(ctx context.Context, begun []v1alpha1.NodeUnstage) {
	node := sync.OnceValues(func() (*corev1.Node, error) {
		ctx, cancel := context.WithTimeout(ctx, a.config.WriteTimeout)
		defer cancel()
		return a.nodes.Get(ctx, a.node, metav1.GetOptions{})
	})
	for i := range begun {
		order := begun[i]
		a.calls.Go(func() {
			result, why := a.unstage(ctx, &order, node)
			a.orders.ended(&order, result, why)
			klog.FromContext(ctx).Info("Carried out an order to unstage a volume", "driver", order.Driver, "handle", order.Handle, "number", order.Number, "result", result, "reason", why)
			a.metrics.unstaged(result)
			signal(a.ended)
		})
	}
}

// unstage looks once more whether the volume has a user, and then unstages it as the kubelet does
// (csi_attacher.go:526, UnmountDevice).
func (a *agent) unstage(ctx context.Context, order *v1alpha1.NodeUnstage, node func() (*corev1.Node, error)) (result v1alpha1.UnstageResult, why string) {
	if why := a.named(order, node); why != "" {
		return v1alpha1.UnstageRefused, why
	}
	seen, err := a.see(ctx)
	if err != nil {
		return v1alpha1.UnstageRefused, err.Error()
	}
	if why := a.orders.allowed(order, seen); why != "" {
		return v1alpha1.UnstageRefused, why
	}
	path := filepath.Join(a.config.KubeletRoot, nodevolumes.StagingPath(order.Driver, order.Handle))
	timed, cancel := context.WithTimeout(ctx, a.config.UnstageTimeout)
	defer cancel()
	called := false
	err = a.drivers.Unstage(timed, order.Driver, order.Handle, path, func() {
		called = true
		a.orders.calls(order)
	})
	switch {
	case err != nil && !called:
		return v1alpha1.UnstageRefused, fmt.Sprintf("the driver could not be called: %v", err)
	case err != nil:
		return v1alpha1.UnstageFailed, err.Error()
	case !called && a.orders.isOpen(order):
		return v1alpha1.UnstageRefused, "the driver says that it does not stage volumes (STAGE_UNSTAGE_VOLUME), and has not answered the call of before: see which driver runs there"
	}
	a.orders.answered(order)
	if err := a.removeRecords(order, a.clock.Now()); err != nil {
		return v1alpha1.UnstageFailed, fmt.Sprintf("the driver has answered that nothing is left, but %v: see at the node what is left in %s, unmount and empty it, and remove that folder", err, filepath.Dir(path))
	}
	return v1alpha1.UnstageDone, ""
}

// named says why the Node, as the API server had it after the order was begun, forbids to
// unstage a volume; empty: it does not.
func (a *agent) named(order *v1alpha1.NodeUnstage, get func() (*corev1.Node, error)) string {
	node, err := get()
	unique := corev1.UniqueVolumeName("kubernetes.io/csi/" + order.Driver + "^" + order.Handle)
	switch {
	case err != nil:
		return fmt.Sprintf("the Node can't be read: %v", err)
	case node.UID != a.uid:
		return "the Node was made again since this process began"
	case node.Status.NodeInfo.BootID != order.BootID:
		return "the Node is of another boot"
	case slices.ContainsFunc(node.Status.VolumesAttached, func(v corev1.AttachedVolume) bool { return v.Name == unique }):
		return "the node's volumesAttached names it again"
	}
	return ""
}

// removeRecords removes the kubelet's records of a volume that was unstaged.
func (a *agent) removeRecords(order *v1alpha1.NodeUnstage, answered time.Time) error {
	root, err := os.OpenRoot(a.config.KubeletRoot)
	if err != nil {
		return err
	}
	defer root.Close()
	table, err := os.Open(a.config.Mounts)
	if err != nil {
		return err
	}
	defer table.Close()
	mounts := nodevolumes.ReadMounts(table, a.config.KubeletRoot)
	if a.clock.Since(answered) > removeWithin {
		return fmt.Errorf("the kubelet's records were not removed within %s", removeWithin)
	}
	return nodevolumes.RemoveStaged(root, mounts, order.Driver, order.Handle)
}
