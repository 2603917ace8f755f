// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
)

// RealData measures how long a PostgreSQL acknowledges nothing while faults are played, and counts the
// records that it has acknowledged and lost. Each fault is played so many times.
func RealData(repeat int) sandbox.Scenario {
	return sandbox.Scenario{
		Name: "real-data",
		Doc: fmt.Sprintf("PostgreSQL, a StatefulSet of one replica, writes numbered records while faults are played, %d times each. A client outside the nodes keeps each acknowledgement. "+
			"In the end each acknowledged record is there, pg_amcheck finds nothing, and the file system is clean. It needs root, and make real.", repeat),
		Modes:     []sandbox.Mode{sandbox.Standalone, sandbox.Cooperative, sandbox.Upstream},
		Extra:     true,
		Exclusive: true,
		Timeout:   time.Duration(repeat)*20*time.Minute + 30*time.Minute,
		Shape: func(shape *sandbox.Shape) {
			realNodes(shape)
			shape.Nodes = 3
			shape.NodeMonitorGracePeriod = 0 // Kubernetes' default
		},
		Run: tell(func(s *story) {
			if s.Mode == sandbox.Upstream {
				s.must(s.Compare())
			}
			d := databases[0]
			c := s.writer(d)
			for _, f := range s.dataFaults() {
				s.playOn(c, f, repeat)
			}
			c.stop()
			s.counts(c, d, s.successor("the database answers", d.name, s.isReady), "")
			if s.Mode != sandbox.Cooperative { // as upstream
				s.splits(d)
			}
		}),
	}
}

// dataFault is what is done to a database's pod, and what is taken back once its successor writes.
type dataFault struct {
	name        string
	breaks, end func(pod *corev1.Pod)
}

func (s *story) dataFaults() []dataFault {
	nothing := func(*corev1.Pod) {}
	powerOff := func(by corev1.Taint) (breaks, end func(pod *corev1.Pod)) {
		return func(pod *corev1.Pod) {
				s.must(s.Cluster.PowerOff(s.ctx, pod.Spec.NodeName))
				s.nodeIs(pod.Spec.NodeName, false)
				s.taint(pod.Spec.NodeName, by)
			}, func(pod *corev1.Pod) {
				s.must(s.Cluster.PowerOn(s.ctx, pod.Spec.NodeName))
				s.nodeIs(pod.Spec.NodeName, true)
				s.untaint(pod.Spec.NodeName, by)
			}
	}
	off, on := powerOff(outOfService())
	return []dataFault{
		{"rolling update", func(*corev1.Pod) { s.rollOutSet(databases[0].name) }, nothing},
		{"drain", func(pod *corev1.Pod) { s.must(s.drain(pod.Spec.NodeName)) }, func(pod *corev1.Pod) { s.uncordon(pod.Spec.NodeName) }},
		{"deleted with force", func(pod *corev1.Pod) { s.must(s.forceDelete(s.ctx, pod.Name)) }, nothing},
		{"machine off, taint out-of-service", off, on},
	}
}

// rollOutSet changes a StatefulSet's template.
func (s *story) rollOutSet(name string) {
	patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"at":%q}}}}}`, time.Now())
	_, err := s.Client.AppsV1().StatefulSets(s.Namespace).Patch(s.ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	s.must(err)
}

// playOn plays a fault so many times, and says how long nothing was acknowledged.
func (s *story) playOn(c *writer, f dataFault, repeat int) {
	var took []time.Duration
	for range repeat {
		old := s.successor("the database answers", c.app, s.isReady)
		c.acknowledges(old.UID)
		c.begin()
		f.breaks(old)
		next := s.successor("the database answers again", c.app, s.isReady, old.UID)
		c.acknowledges(next.UID)
		took = append(took, c.longest())
		s.say("%s: nothing was acknowledged for %.1f s; %s is at %s, and was at %s", f.name, took[len(took)-1].Seconds(), next.Name, next.Spec.NodeName, old.Spec.NodeName)
		f.end(old)
	}
	slices.Sort(took)
	s.SetCount("ms, "+f.name+": median", int(took[len(took)/2].Milliseconds()))
	s.SetCount("ms, "+f.name+": worst", int(took[len(took)-1].Milliseconds()))
}

// counts compares what the client has kept with what the database has, and ends the database, of
// which runs is a pod that runs. With Moorage nothing is lost or damaged.
func (s *story) counts(c *writer, d database, runs *corev1.Pod, prefix string) {
	acked, lost := c.last(), -1
	broken := s.EventuallyWithin(s.ctx, 2*time.Minute, "the database answers", func() error { return s.isReady(s.View.Pod(s.Namespace, runs.Name)) })
	if broken == nil {
		lost = acked - number(s.run(runs.Name, fmt.Sprintf("psql -Atc 'SELECT count(*) FROM kept WHERE n <= %d'", acked)))
		_, broken = s.Exec(s.ctx, runs.Name, "sh", "-ec", d.read)
	}
	claim := dataOf(runs.Name)
	handle := s.handle(claim)
	s.must(s.Client.AppsV1().StatefulSets(s.Namespace).Delete(s.ctx, d.name, metav1.DeleteOptions{}))
	s.gone(runs.Name)
	s.leavesEveryNode(claim)
	broken = errors.Join(broken, s.Cluster.CheckDisk(s.ctx, handle))
	s.SetCount(prefix+"records acknowledged", acked)
	s.SetCount(prefix+"records lost (-1: nothing answers)", lost)
	if broken != nil {
		s.Count(prefix + "file systems or databases damaged")
	}
	s.say("%s%d records were acknowledged, %d are lost; damage: %v", prefix, acked, lost, broken)
	if s.moorage() {
		s.must(broken)
		s.expect(lost == 0, "each acknowledged record is there", "%d of %d are not", lost, acked)
	}
}

// cutFor is how long a node is cut off: longer than the six minutes after which kube-controller-manager
// detaches by default.
const cutFor = 8 * time.Minute

// splits cuts the database's node off from the API server, and not from its disks, and has a person
// delete the pod with force. Upstream detaches after six minutes, while the old pod goes on writing.
// Moorage is told to detach by evidence only.
func (s *story) splits(d database) {
	if s.moorage() {
		s.policy("by-evidence", v1alpha1.AttachPolicySpec{ForceDetach: &v1alpha1.ForceDetachPolicy{OnlyOutOfService: true}})
	}
	c := s.writer(d)
	old := s.successor("the database answers", d.name, s.isReady)
	c.acknowledges(old.UID)
	node := old.Spec.NodeName
	s.must(s.Cluster.Cut(node))
	s.nodeIs(node, false)
	s.must(s.forceDelete(s.ctx, old.Name))
	began := time.Now()
	err := s.EventuallyWithin(s.ctx, cutFor, "the database answers elsewhere", func() error {
		for _, pod := range s.PodsOf(sandbox.AppLabel, d.name) {
			if pod.UID != old.UID && s.isReady(pod) == nil {
				return nil
			}
		}
		return errors.New("not yet")
	})
	if err == nil {
		s.say("a second database answers %.0f s after the first was deleted, which still writes", time.Since(began).Seconds())
		s.Count("cut off: a second database wrote to the disk")
	}
	s.must(s.Cluster.Restore(node))
	s.nodeIs(node, true)
	c.stop()
	next := s.successor("the database runs elsewhere or again", d.name, s.isRunning, old.UID)
	s.counts(c, d, next, "cut off: ")
}

// isReady returns nil if a pod runs and its database answers.
func (s *story) isReady(pod *corev1.Pod) error {
	if pod == nil {
		return errors.New("there is no pod")
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return nil
		}
	}
	return errors.New("the pod is not ready")
}

// writer is a client of a database, outside of all nodes: it writes numbered records, one after the
// other, and keeps which were acknowledged. Its methods are safe for parallel use.
type writer struct {
	*story
	app  string
	end  context.CancelFunc
	done chan struct{}

	mu    sync.Mutex
	acked int               // the last record
	by    map[types.UID]int // acknowledgements, by pod
	at    time.Time         // of the last one
	gap   time.Duration     // the longest between two, since begin
}

// writer makes a StatefulSet of a database, and a client that begins to write.
func (s *story) writer(d database) *writer {
	s.statefulSetOf(d)
	ctx, end := context.WithCancel(s.ctx)
	c := &writer{story: s, app: d.name, end: end, done: make(chan struct{}), by: map[types.UID]int{}}
	pod := s.successor("the database answers", d.name, s.isReady)
	s.run(pod.Name, "psql -qc 'CREATE TABLE kept (n int PRIMARY KEY, t text)'")
	go func() {
		defer close(c.done)
		for ctx.Err() == nil {
			c.write(ctx)
		}
	}()
	return c
}

// write writes to the newest pod that is ready, until it ends or another one is newer.
func (c *writer) write(ctx context.Context) {
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	pod := c.newest()
	if pod == nil {
		select {
		case <-ctx.Done():
		case <-look.C:
		}
		return
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
				if newest := c.newest(); newest != nil && newest.UID != pod.UID {
					end()
				}
			}
		}
	}()
	script := fmt.Sprintf(`n=%d; while psql -qc "INSERT INTO kept VALUES ($n, repeat('x', 500)) ON CONFLICT DO NOTHING"; do echo $n; n=$((n+1)); done`, c.last()+1)
	_ = c.ExecInto(ctx, &lines{each: func(line string) { c.acknowledged(pod.UID, line) }}, pod.Name, "sh", "-c", script) // it ends by what is done to the pod
}

// newest is the youngest pod that is ready; nil if there is none.
func (c *writer) newest() *corev1.Pod {
	pods := slices.DeleteFunc(c.PodsOf(sandbox.AppLabel, c.app), func(pod *corev1.Pod) bool { return c.isReady(pod) != nil })
	if len(pods) == 0 {
		return nil
	}
	return pods[len(pods)-1]
}

func (c *writer) acknowledged(by types.UID, line string) {
	n, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if !c.at.IsZero() {
		c.gap = max(c.gap, now.Sub(c.at))
	}
	c.acked, c.at = max(c.acked, n), now
	c.by[by]++
}

// begin forgets the longest pause so far.
func (c *writer) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gap = 0
}

func (c *writer) longest() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gap
}

func (c *writer) last() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.acked
}

// acknowledges waits until a pod has acknowledged ten records.
func (c *writer) acknowledges(pod types.UID) {
	c.must(c.EventuallyWithin(c.ctx, 2*time.Minute, "the database acknowledges records", func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.by[pod] < 10 {
			return fmt.Errorf("%d so far", c.by[pod])
		}
		return nil
	}))
}

// stop ends the client.
func (c *writer) stop() {
	c.end()
	<-c.done
}

// lines is a writer that hands over each line that is written whole.
type lines struct {
	each func(line string)
	rest bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.rest.Write(p)
	for {
		line, rest, whole := bytes.Cut(l.rest.Bytes(), []byte("\n"))
		if !whole {
			return len(p), nil
		}
		l.each(string(line))
		l.rest = *bytes.NewBuffer(slices.Clone(rest))
	}
}

// statefulSetOf makes a StatefulSet of a database, of one replica. Its pod leaves a silent node soon.
func (s *story) statefulSetOf(d database) {
	s.statefulSetWith(d.name, func(set *appsv1.StatefulSet) {
		pod := &set.Spec.Template.Spec
		pod.Containers[0].Image = d.image
		pod.TerminationGracePeriodSeconds = new(int64(30))
		pod.Containers[0].ReadinessProbe = &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", d.ready}}},
			PeriodSeconds: 1,
		}
		evictedSoon(pod)
	})
}
