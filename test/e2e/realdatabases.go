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

type database struct {
	name, image string
	ready       string
	write       string
	begin       string
	// read prints the number of acknowledged records and the last record; it fails if something is broken.
	read string
	// put writes record $n, may be repeated, and fails without an acknowledgement. count counts the records
	// to %d.
	create, put, count string
}

var databases = []database{
	{
		name: "postgresql", image: "moorage.dev/sandbox/postgresql:15",
		ready: "psql -qc 'SELECT 1'",
		write: `psql -qc 'CREATE TABLE IF NOT EXISTS kept (n int PRIMARY KEY, t text)' 2>/dev/null
			for n in $(seq $from $to); do echo "INSERT INTO kept VALUES ($n, repeat('x', 500));"; done | psql -q -v ON_ERROR_STOP=1`,
		begin:  `(echo 'BEGIN; INSERT INTO kept SELECT -n, repeat(n::text, 100) FROM generate_series(1, 20000) n; SELECT pg_sleep(600);' | psql -q >/dev/null 2>&1 &)`,
		read:   `psql -AtF' ' -c 'SELECT count(*), coalesce(max(n), 0) FROM kept'; pg_amcheck --all --install-missing --heapallindexed`,
		create: "psql -qc 'CREATE TABLE kept (n int PRIMARY KEY, t text)'",
		put:    `psql -qc "INSERT INTO kept VALUES ($n, repeat('x', 500)) ON CONFLICT DO NOTHING"`,
		count:  "psql -Atc 'SELECT count(*) FROM kept WHERE n <= %d'",
	},
	{
		name: "etcd", image: "moorage.dev/sandbox/etcd:3.4",
		ready: "etcdctl endpoint health",
		write: `for n in $(seq $from $to); do etcdctl put kept/$(printf %06d $n) $n >/dev/null; done`,
		begin: `(while etcdctl put other x; do :; done >/dev/null 2>&1 &)`,
		read: `etcdctl endpoint health >/dev/null 2>&1
			etcdctl get kept/ --prefix --print-value-only | awk 'NF {n++; last = $1} END {print n, last}'`,
		create: "true",
		put:    `etcdctl put kept/$(printf %06d $n) $n >/dev/null`,
		count:  `etcdctl get kept/ --prefix --print-value-only | awk 'NF && $1 <= %d {n++} END {print n+0}'`,
	},
	{
		name: "redis", image: "moorage.dev/sandbox/redis:7.0",
		ready:  "redis-cli ping | grep -q PONG",
		write:  `for n in $(seq $from $to); do echo "RPUSH kept $n"; done | redis-cli | awk -v want=$((to - from + 1)) '/^[0-9]+$/ {n++} END {exit n != want}'`,
		begin:  `(while redis-cli INCR other; do :; done >/dev/null 2>&1 &)`,
		read:   `echo $(redis-cli LLEN kept) $(redis-cli LINDEX kept -1)`,
		create: "true",
		put:    `[ "$(redis-cli SET kept:$n $n)" = OK ]`,
		count:  `redis-cli --scan --pattern 'kept:*' | awk -F: '$2 <= %d {n++} END {print n+0}'`,
	},
}

func realDatabases() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "real-databases",
		Doc: "PostgreSQL with checksums, etcd and Redis move to another node in peace; then their machine loses power while they write, and they move by the out-of-service taint. " +
			"Each has every record that it has acknowledged, and no other. It needs root, and make real.",
		Modes: []sandbox.Mode{sandbox.Standalone, sandbox.Upstream},
		Shape: func(shape *sandbox.Shape) { realPowerOff().Shape(shape) },
		Extra: true,
		Takes: 2 * time.Minute,
		Run: tell(func(s *story) {
			const first, second = "worker-1", "worker-2"
			pods, handles := map[string]*corev1.Pod{}, map[string]string{}
			s.cordon(second)
			for _, d := range databases {
				s.claim(d.name)
				s.database(d)
			}
			for _, d := range databases {
				pods[d.name] = s.successor(d.name+" runs", d.name, s.isRunning)
				handles[d.name] = s.handle(d.name)
				s.answers(pods[d.name].Name)
				s.writes(d, pods[d.name].Name, 1, 300)
			}
			s.say("each database has acknowledged 300 records on %s", first)
			s.uncordon(second)
			s.cordon(first)
			for _, d := range databases {
				s.remove(pods[d.name].Name)
			}
			for _, d := range databases {
				pods[d.name] = s.successor(d.name+" runs elsewhere", d.name, s.isRunning, pods[d.name].UID)
				s.answers(pods[d.name].Name)
				s.kept(d, pods[d.name].Name, 300)
				s.writes(d, pods[d.name].Name, 301, 600)
				s.run(pods[d.name].Name, d.begin+"\nsleep 1")
			}
			s.uncordon(first)
			s.must(s.Cluster.PowerOff(s.ctx, second))
			s.say("%s has lost its power with 600 records of each acknowledged, and writes under way", second)
			for _, d := range databases {
				pods[d.name] = s.replaced(pods[d.name])
			}
			s.taint(second, outOfService())
			for _, d := range databases {
				s.runs(pods[d.name].Name)
				s.answers(pods[d.name].Name)
				s.kept(d, pods[d.name].Name, 600)
			}
			s.say("each has all of them on %s, and nothing is broken", first)
			s.must(s.Cluster.PowerOn(s.ctx, second))
			s.nodeIs(second, true)
			s.untaint(second, outOfService())
			for _, d := range databases {
				s.must(s.Client.AppsV1().Deployments(s.Namespace).Delete(s.ctx, d.name, metav1.DeleteOptions{}))
			}
			for _, d := range databases {
				s.gone(pods[d.name].Name)
				s.leavesEveryNode(d.name)
				s.must(s.Cluster.CheckDisk(s.ctx, handles[d.name]))
			}
		}),
	}
}

func (s *story) database(d database) {
	made := sandbox.Deployment(d.name, d.name)
	made.Spec.Template.Spec.Containers[0].Image = d.image
	made.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(30))
	made.Spec.Template.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", d.ready}}},
		PeriodSeconds: 1,
	}
	evictedSoon(&made.Spec.Template.Spec)
	s.deployment(made)
}

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

func (s *story) writes(d database, pod string, from, to int) {
	s.run(pod, fmt.Sprintf("from=%d to=%d\n", from, to)+d.write)
}

func (s *story) kept(d database, pod string, records int) {
	found := s.run(pod, d.read)
	s.expect(found == fmt.Sprintf("%d %d", records, records), d.name+" has each record that it has acknowledged, and no other", "it has %s of %d", found, records)
}
