// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
)

func awaitListener(ctx context.Context, addr string) error {
	return wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		if err != nil {
			return false, nil
		}
		return true, conn.Close()
	})
}

// Resources are listed a moment after their definitions are established. An earlier informer tries again
// only a second later.
func (c *Cluster) awaitServed(ctx context.Context, resources ...schema.GroupVersionResource) error {
	for _, resource := range resources {
		var last error
		err := wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			_, last = c.dynamic.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1})
			return last == nil, nil
		})
		if err != nil {
			return fmt.Errorf("%s can't be listed: %w", resource.Resource, errors.Join(err, last))
		}
	}
	return nil
}

func (c *Cluster) awaitSchedulable(ctx context.Context) error {
	return c.view.Await(ctx, func() error { return c.eachNode(c.nodeSchedulable) })
}

// The webhook fails open: a pod that came earlier would not be stamped.
func (c *Cluster) awaitMoorage(ctx context.Context) error {
	if err := awaitListener(ctx, c.site.webhookAddr); err != nil {
		return err
	}
	leases := c.client.CoordinationV1().Leases(MoorageNamespace)
	for _, name := range []string{MoorageController, MoorageScheduler} {
		var last error
		err := wait.PollUntilContextCancel(ctx, tick, true, func(ctx context.Context) (bool, error) {
			var lease *coordinationv1.Lease
			lease, last = leases.Get(ctx, name, metav1.GetOptions{})
			return last == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "", nil
		})
		if err != nil {
			return fmt.Errorf("%s does not hold its lease (%w); its log is %s", name, errors.Join(err, last), c.site.logPath(name))
		}
	}
	return nil
}

func (c *Cluster) nodeNames() []string {
	names := make([]string, c.options.Nodes)
	for i := range names {
		names[i] = NodeName(i + 1)
	}
	return names
}

func (c *Cluster) eachNode(check func(name string) error) error {
	for _, name := range c.nodeNames() {
		if err := check(name); err != nil {
			return fmt.Errorf("%s %w; its log is %s", name, err, c.site.logPath(name))
		}
	}
	return nil
}

func (c *Cluster) nodeReady(name string) error {
	node, csi := c.view.Node(name), c.view.CSINode(name)
	switch {
	case node == nil:
		return errors.New("has not registered itself")
	case !IsReady(node):
		return errors.New("is not Ready")
	case csi == nil:
		return errors.New("has no CSINode")
	}
	for _, driver := range csi.Spec.Drivers {
		if driver.Name == DriverName {
			return nil
		}
	}
	return errors.New("has not registered driver " + DriverName)
}

func (c *Cluster) nodeSchedulable(name string) error {
	node := c.view.Node(name)
	if node == nil {
		return errors.New("is gone")
	}
	if len(node.Spec.Taints) > 0 {
		return errors.New("still has the taint " + node.Spec.Taints[0].Key)
	}
	return nil
}

func IsReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
