// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/test/sandbox"
)

// realPostgreSQL guards that a database keeps what it has acknowledged, when it is moved in peace
// and when its machine loses power.
func realPostgreSQL() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "real-postgresql",
		Doc: "PostgreSQL, with checksums, moves to another node in peace; then its machine loses power while it has open transactions, and it moves by the out-of-service taint. " +
			"It has each row that it has acknowledged, and finds nothing broken. It needs root, and make real.",
		Modes: []sandbox.Mode{sandbox.Standalone, sandbox.Upstream},
		Shape: func(shape *sandbox.Shape) { realPowerOff().Shape(shape) },
		Extra: true,
		Takes: 90 * time.Second,
		Run: tell(func(s *story) {
			s.claim("data")
			s.postgreSQL("data")
			first := s.successor("the database runs", "db", s.isRunning)
			handle := s.handle("data")
			s.answers(first.Name)
			s.run(first.Name, `psql -qc 'CREATE TABLE kept (n int PRIMARY KEY, t text)'; `+realRows(1, 300))
			s.say("PostgreSQL has acknowledged 300 rows on %s", first.Spec.NodeName)
			s.cordon(first.Spec.NodeName)
			s.remove(first.Name)
			second := s.successor("the database runs elsewhere", "db", s.isRunning, first.UID)
			s.uncordon(first.Spec.NodeName)
			s.answers(second.Name)
			s.keptRows(second.Name, 300)
			s.run(second.Name, realRows(301, 600)+`
				(echo 'BEGIN; INSERT INTO kept SELECT n, repeat(n::text, 100) FROM generate_series(1001, 20000) n; SELECT pg_sleep(600);' | psql -q >/dev/null 2>&1 &)
				sleep 1`)
			s.must(s.Cluster.PowerOff(s.ctx, second.Spec.NodeName))
			s.say("%s has lost its power with 600 rows acknowledged, and a transaction open", second.Spec.NodeName)
			third := s.replaced(second)
			s.taint(second.Spec.NodeName, outOfService())
			s.runs(third.Name)
			s.answers(third.Name)
			s.keptRows(third.Name, 600)
			s.say("it has all of them on %s, and nothing is broken", third.Spec.NodeName)
			s.must(s.Cluster.PowerOn(s.ctx, second.Spec.NodeName))
			s.nodeIs(second.Spec.NodeName, true)
			s.untaint(second.Spec.NodeName, outOfService())
			s.must(s.Client.AppsV1().Deployments(s.Namespace).Delete(s.ctx, "db", metav1.DeleteOptions{}))
			s.gone(third.Name)
			s.leavesEveryNode("data")
			s.must(s.Cluster.CheckDisk(s.ctx, handle))
		}),
	}
}

// postgreSQL makes a Deployment of PostgreSQL with a claim.
func (s *story) postgreSQL(claim string) {
	d := sandbox.Deployment("db", claim)
	d.Spec.Template.Spec.Containers[0].Image = "moorage.dev/sandbox/postgresql:15"
	d.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(30))
	d.Spec.Template.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"psql", "-qc", "SELECT 1"}}},
		PeriodSeconds: 1,
	}
	evictedSoon(&d.Spec.Template.Spec)
	s.deployment(d)
}

// answers waits until a pod's database answers, as its kubelet finds out.
func (s *story) answers(pod string) {
	s.until("the database of "+pod+" answers", func() error {
		for _, c := range s.View.Pod(s.Namespace, pod).Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return errors.New("its pod is not ready")
	})
}

// realRows inserts rows, each in a transaction of its own, and fails unless all are acknowledged.
func realRows(from, to int) string {
	return fmt.Sprintf(`for n in $(seq %d %d); do echo "INSERT INTO kept VALUES ($n, repeat('x', 500));"; done | psql -q -v ON_ERROR_STOP=1`, from, to)
}

// keptRows expects exactly the rows that were acknowledged, and a database that finds nothing broken.
func (s *story) keptRows(pod string, rows int) {
	found := s.run(pod, `psql -Atc 'SELECT count(*), coalesce(max(n), 0) FROM kept'; pg_amcheck --all --install-missing --heapallindexed`)
	s.expect(found == fmt.Sprintf("%d|%d", rows, rows), "the database has each row that it has acknowledged, and no other", "it has %s of %d", found, rows)
}
