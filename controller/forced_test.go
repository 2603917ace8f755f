// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/test/apitest"
)

func (c *cluster) forcedDetaches() (messages []string) {
	c.t.Helper()
	list, err := c.Kube.CoreV1().Events(metav1.NamespaceDefault).List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, e := range list.Items {
		if e.Reason == "ForcedDetach" && e.InvolvedObject.Name == "n1" {
			messages = append(messages, e.Message)
		}
	}
	return messages
}

func (c *cluster) forcedTotal(want string) {
	c.t.Helper()
	text := "# HELP moorage_forced_detaches_total Volumes detached without their kubelet's report, by rule.\n# TYPE moorage_forced_detaches_total counter\n" + want
	if err := testutil.GatherAndCompare(c.metrics.Registry, strings.NewReader(text), "moorage_forced_detaches_total"); err != nil {
		c.t.Error(err)
	}
}

// The leader is killed before the answer of the forced deletion. Only the next leader reports it.
func TestForcedDetachIsToldByTheNextLeader(t *testing.T) {
	c := newCluster(t, 4, "n1", "n2")
	c.tells, c.metrics, c.lost = true, report.NewMetrics(nil), make(chan struct{})
	close(c.lost)
	c.disk("data")
	c.pod("db", "n1", "data", false)
	stop := c.leadAs(1, func(config *Config) { config.WriteTimeout = time.Second }) // the end of its last write is waited for
	c.until("the volume is reported", func() bool { return c.reported("data", "n1") })
	killed, deleted := make(chan struct{}), make(chan struct{})
	c.Intercept(func(r apitest.Request, serve func()) error {
		if r.Verb == "delete" && r.Resource == "volumeattachments" {
			serve()
			close(deleted)
			<-killed
			return refused("dead")
		}
		serve()
		return nil
	})
	c.terminating("db")
	c.changeNode("n1", func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
		n.Status.Conditions[0].Status = corev1.ConditionUnknown
		n.Status.VolumesInUse = []corev1.UniqueVolumeName{unique("data")}
	})
	<-deleted
	stop()
	close(killed)
	c.Intercept(nil)
	if told := c.forcedDetaches(); len(told) > 0 {
		t.Fatalf("it was told already: %v", told)
	}

	for epoch := int64(2); epoch < 4; epoch++ {
		c.metrics = report.NewMetrics(nil)
		c.pod("later", "n2", "data", false)
		stop := c.lead(epoch)
		c.until("the volume is elsewhere", func() bool { return c.reported("data", "n2") })
		c.until("it is told", func() bool { return len(c.forcedDetaches()) > 0 })
		if epoch == 2 {
			c.forcedTotal("moorage_forced_detaches_total{rule=\"OutOfService\"} 1\n")
		} else {
			c.forcedTotal("")
		}
		stop()
	}
	if told := c.forcedDetaches(); len(told) != 1 || !strings.Contains(told[0], "rule OutOfService") {
		t.Errorf("told: %v", told)
	}
}
