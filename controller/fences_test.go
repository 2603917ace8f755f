// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/apitest"
)

func (c *cluster) changeNode(name string, what func(*corev1.Node)) {
	var n corev1.Node
	c.Get("nodes", "", name, &n)
	what(&n)
	c.Put("nodes", &n)
}

// A leader dies between the forced removal from volumesAttached and the deletion; the kubelet restarts. The
// next leader doubts the kubelet's list.
func TestNextLeaderDoubtsFences(t *testing.T) {
	c := newCluster(t, 4, "n1", "n2")
	c.disk("data")
	c.changeNode("n1", func(n *corev1.Node) { n.Status.NodeInfo.BootID, n.Status.NodeInfo.SystemUUID = "b1", "m1" })
	c.pod("db", "n1", "data", false)
	stop := c.lead(1)
	c.until("the volume is reported", func() bool { return c.reported("data", "n1") })
	var dead atomic.Bool
	c.Intercept(func(r apitest.Request, serve func()) error {
		if !dead.Load() && r.Resource == "volumeattachments" && r.Verb == "delete" {
			return apierrors.NewInternalError(errors.New("the leader dies"))
		}
		serve()
		return nil
	})
	c.changeNode("n1", func(n *corev1.Node) {
		n.Status.VolumesInUse = []corev1.UniqueVolumeName{unique("data")}
		n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
		n.Status.Conditions[0].Status = corev1.ConditionUnknown
		n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(time.Unix(3000, 0))
	})
	c.Remove("pods", "shop", "db")
	c.until("it is taken out by force", func() bool { return !c.reported("data", "n1") })
	if f := c.hold("data").Fenced; len(f) != 1 || !f[0].InUse {
		t.Fatalf("the hold says %+v", f)
	}
	stop()
	dead.Store(true)

	c.changeNode("n1", func(n *corev1.Node) {
		n.Status.VolumesInUse, n.Spec.Taints = nil, nil
		n.Status.Conditions[0].Status = corev1.ConditionTrue
		n.Status.Conditions[0].LastTransitionTime = metav1.NewTime(time.Unix(4000, 0))
		n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(time.Unix(4060, 0))
	})
	c.pod("again", "n2", "data", false)
	c.Forget()
	c.lead(2)
	c.until("the volume is elsewhere, or the next leader says why not", func() bool {
		h := c.hold("data")
		pending := meta.FindStatusCondition(h.Conditions, v1alpha1.HoldDetachPending)
		return c.reported("data", "n2") || h.Next != nil && pending != nil && pending.Status == metav1.ConditionTrue
	})
	if c.attachment("data", "n1") == nil {
		t.Errorf("detached from a machine that has it mounted:\n%s", strings.Join(c.Writes(), "\n"))
	}
}
