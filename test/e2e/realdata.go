// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
)

func dataNodes(shape *sandbox.Shape) {
	realNodes(shape)
	shape.Nodes = 3
	shape.NodeMonitorGracePeriod = 0 // Kubernetes' default
	shape.MoorageNode = shape.Mode == sandbox.Standalone
	shape.RequireReport = shape.MoorageNode
}

// A machine loses power five times at most, and once for each kind of evidence that only Moorage takes:
// PowerOffTimes measures these.
func RealData(repeat int) sandbox.Scenario {
	return sandbox.Scenario{
		Name: "real-data",
		Doc: fmt.Sprintf("PostgreSQL, a StatefulSet of one replica, writes numbered records while faults are played, %d times each. A client outside the nodes keeps each acknowledgement. "+
			"In the end each acknowledged record is there, pg_amcheck finds nothing, and the file system is clean. It needs root, and make real.", repeat),
		Modes:     []sandbox.Mode{sandbox.Standalone, sandbox.Cooperative, sandbox.Upstream},
		Extra:     true,
		Exclusive: true,
		Timeout:   time.Duration(repeat)*20*time.Minute + 40*time.Minute,
		Shape:     dataNodes,
		Run: tell(func(s *story) {
			if s.Mode != sandbox.Standalone {
				s.must(s.Compare())
			}
			s.warm(databases[0].image)
			c := s.writer(databases[0])
			for _, f := range s.dataFaults() {
				c = s.playOn(c, f, repeat)
			}
			s.finish(c, "")
			forgets := s.kubeletForgets()
			s.finish(s.playOn(s.writer(databases[0]), forgets, repeat), forgets.name+": ")
		}),
	}
}

// A container runtime is slow until the first pod has ended, and all that it has unpacked is on its disk.
func (s *story) warm(image string) {
	for _, name := range []string{"first", "second"} {
		for _, node := range s.View.Nodes() {
			pod := sandbox.Pod(name + "-" + node.Name)
			pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node.Name}
			pod.Spec.Containers[0].Image = image
			pod.Spec.Containers[0].Command = []string{"sleep", "infinity"}
			pod.Spec.TerminationGracePeriodSeconds = new(int64(1))
			s.must(s.CreatePod(s.ctx, pod))
		}
		for _, node := range s.View.Nodes() {
			s.until("a pod runs on "+node.Name, func() error { return s.Running(name + "-" + node.Name) })
			s.remove(name + "-" + node.Name)
		}
		for _, node := range s.View.Nodes() {
			s.gone(name + "-" + node.Name)
		}
	}
}

type dataFault struct {
	name        string
	breaks, end func(pod *corev1.Pod)
	stays       bool
	policy      *v1alpha1.AttachPolicySpec
	most        int
}

func (s *story) dataFaults() []dataFault {
	nothing := func(*corev1.Pod) {}
	uncordons := func(pod *corev1.Pod) { s.uncordon(pod.Spec.NodeName) }
	faults := []dataFault{
		{name: "rolling update", breaks: func(*corev1.Pod) { s.rollOutSet(databases[0].name) }, end: nothing},
		{name: "drain", breaks: func(pod *corev1.Pod) { s.must(s.drain(pod.Spec.NodeName)) }, end: uncordons},
		{name: "deleted with force", breaks: func(pod *corev1.Pod) { s.must(s.forceDelete(s.ctx, pod.Name)) }, end: nothing},
		{name: "containerd killed while the pod leaves", breaks: func(pod *corev1.Pod) {
			s.cordon(pod.Spec.NodeName)
			s.must(s.Cluster.Kill(s.ctx, sandbox.Containerd(pod.Spec.NodeName)))
			s.remove(pod.Name)
			s.must(s.Cluster.StartAgain(sandbox.Containerd(pod.Spec.NodeName)))
		}, end: uncordons},
		{name: "shim killed", stays: true, breaks: func(pod *corev1.Pod) { s.must(s.Cluster.KillShims(pod.Spec.NodeName)) }, end: func(pod *corev1.Pod) {
			s.remove(pod.Name) // a kubelet waits longer before each restart of the same pod's container
			s.successor("the database answers once more", databases[0].name, s.isReady, pod.UID)
		}},
		s.machineOff("taint out-of-service", nil, s.tainting("", outOfService())),
	}
	if s.Mode != sandbox.Standalone {
		return faults
	}
	return append(faults,
		s.machineOff("taint of a cloud", &v1alpha1.AttachPolicySpec{UnpublishFences: new(true)}, s.tainting("", corev1.Taint{
			Key: "node.cloudprovider.kubernetes.io/shutdown", Effect: corev1.TaintEffectNoSchedule,
		})),
		s.machineOff("condition", &v1alpha1.AttachPolicySpec{ForceDetach: &v1alpha1.ForceDetachPolicy{FencedCondition: new(fencedByScript)}},
			evidence{says: s.vouch, ends: func(string) {}}),
		s.machineOff("a minute without a sign", &v1alpha1.AttachPolicySpec{
			UnpublishFences: new(true), ForceDetach: &v1alpha1.ForceDetachPolicy{AfterUnreachable: &metav1.Duration{Duration: unreachableFor}},
		}, evidence{says: func(string) {}, ends: func(string) {}}),
	)
}

// kubeletForgets kills a kubelet between NodeUnpublish and NodeUnstage; a person unmounts the volume.
func (s *story) kubeletForgets() dataFault {
	forgets := func(pod *corev1.Pod) {
		s.cordon(pod.Spec.NodeName)
		s.forget(pod.Spec.NodeName, pod.Name, s.handle(dataOf(pod.Name)))
	}
	unmounts := func(pod *corev1.Pod) {
		handle := s.handle(dataOf(pod.Name))
		s.must(s.Cluster.Unstage(s.ctx, pod.Spec.NodeName, handle, sandbox.StagingPath(handle)))
	}
	uncordons := func(pod *corev1.Pod) { s.uncordon(pod.Spec.NodeName) }
	f := dataFault{name: "kubelet and driver killed before they unmount", breaks: forgets, end: func(pod *corev1.Pod) { unmounts(pod); uncordons(pod) }}
	if s.Mode == sandbox.Standalone {
		f.breaks = func(pod *corev1.Pod) {
			forgets(pod)
			s.forgotten(pod.Spec.NodeName, s.handle(dataOf(pod.Name)))
			unmounts(pod)
		}
		f.end = uncordons
	}
	return f
}

// A StatefulSet makes no other pod before the pod at the dead node is deleted.
func (s *story) machineOff(name string, policy *v1alpha1.AttachPolicySpec, known evidence) dataFault {
	return dataFault{
		name: "machine off, " + name, policy: policy, most: map[bool]int{true: 1, false: 5}[policy != nil],
		breaks: func(pod *corev1.Pod) {
			s.must(s.Cluster.PowerOff(s.ctx, pod.Spec.NodeName))
			s.nodeIs(pod.Spec.NodeName, false)
			known.says(pod.Spec.NodeName)
			if policy != nil { // with the out-of-service taint kube-controller-manager does this
				s.deleteAt(pod)
			}
		},
		end: func(pod *corev1.Pod) {
			s.must(s.Cluster.PowerOn(s.ctx, pod.Spec.NodeName))
			s.nodeIs(pod.Spec.NodeName, true)
			known.ends(pod.Spec.NodeName)
		},
	}
}

// Successors that are bound there before the taint is seen are deleted, too.
func (s *story) deleteAt(old *corev1.Pod) {
	if err := s.forceDelete(s.ctx, old.Name); !apierrors.IsNotFound(err) {
		s.must(err)
	}
	s.until("the next pod is bound elsewhere", func() error {
		pod := s.View.Pod(s.Namespace, old.Name)
		if pod == nil || pod.UID == old.UID {
			return errors.New("there is no such pod yet")
		}
		err := s.boundElsewhere(pod, old.Spec.NodeName)
		if pod.Spec.NodeName == old.Spec.NodeName {
			return errors.Join(err, s.forceDelete(s.ctx, pod.Name))
		}
		return err
	})
}

func (s *story) rollOutSet(name string) {
	patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"at":%q}}}}}`, time.Now())
	_, err := s.Client.AppsV1().StatefulSets(s.Namespace).Patch(s.ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	s.must(err)
}

func (s *story) playOn(c *writer, f dataFault, repeat int) *writer {
	if f.policy != nil {
		s.policy("data", *f.policy)
		defer s.noPolicy("data")
	}
	if f.most > 0 {
		repeat = min(repeat, f.most)
	}
	var took []time.Duration
	for range repeat {
		pause, err := s.playOnce(c, f)
		if err != nil {
			if s.Mode == sandbox.Standalone || s.ctx.Err() != nil {
				s.must(err)
			}
			s.say("%s: the database does not come back: %v", f.name, err)
			c.mayLose, c.patience = true, 20*time.Second
			s.finish(c, f.name+": ")
			c = s.writer(c.database)
			continue
		}
		took = append(took, pause)
	}
	if len(took) == 0 {
		return c
	}
	s.countTimes(f.name, took)
	return c
}

func (s *story) playOnce(c *writer, f dataFault) (pause time.Duration, err error) {
	var old *corev1.Pod
	err = ended(func() {
		found := s.successor("the database answers", c.name, s.isReady)
		c.begins(found)
		c.acknowledges(found.UID)
		c.begin()
		old = found
		f.breaks(old)
		var next *corev1.Pod
		if f.stays {
			next = s.restarted(old)
			c.begins(next)
		} else {
			next = s.successor("the database answers again", c.name, s.isReady, old.UID)
		}
		c.acknowledges(next.UID)
		pause = c.longest()
		s.say("%s: nothing was acknowledged for %.1f s; %s is at %s, and was at %s", f.name, pause.Seconds(), next.Name, next.Spec.NodeName, old.Spec.NodeName)
	})
	if old == nil {
		return pause, err
	}
	return pause, errors.Join(err, ended(func() { f.end(old) }))
}

func (s *story) restarted(old *corev1.Pod) *corev1.Pod {
	return s.successor("the database answers again", old.Labels[sandbox.AppLabel], func(pod *corev1.Pod) error {
		if restarts(pod) <= restarts(old) {
			return errors.New("its container was not started again")
		}
		return s.isReady(pod)
	})
}

func restarts(pod *corev1.Pod) (sum int32) {
	for _, c := range pod.Status.ContainerStatuses {
		sum += c.RestartCount
	}
	return sum
}

func (s *story) finish(c *writer, prefix string) {
	c.stop()
	s.counts(c, c.name+"-0", prefix)
}

func (s *story) counts(c *writer, pod, prefix string) {
	acked, lost := c.last(), 0
	if c.first != nil {
		acked += c.first.last() - ofFirst
	}
	damage := s.EventuallyWithin(s.ctx, c.patience, "the database answers", func() error { return s.isReady(s.View.Pod(s.Namespace, pod)) })
	found := 0
	if damage == nil {
		found, damage = c.found(pod)
	}
	if damage != nil {
		s.add(prefix+"databases that answer no more", 1)
	} else {
		lost = acked - found
		_, damage = s.Exec(s.ctx, pod, "sh", "-ec", c.read)
	}
	claim := dataOf(pod)
	handle := s.handle(claim)
	s.must(s.Client.AppsV1().StatefulSets(s.Namespace).Delete(s.ctx, c.name, metav1.DeleteOptions{}))
	s.gone(pod)
	s.leavesEveryNode(claim)
	damage = errors.Join(damage, s.Cluster.CheckDisk(s.ctx, handle))
	s.must(s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).Delete(s.ctx, claim, metav1.DeleteOptions{}))
	s.add(prefix+"records acknowledged", acked)
	s.add(prefix+"records lost", lost)
	s.add(prefix+"file systems or databases damaged", map[bool]int{true: 1}[damage != nil])
	s.say("%s%s: %d records were acknowledged, %d are lost; damage: %v", prefix, c.name, acked, lost, damage)
	if s.Mode == sandbox.Standalone && !c.mayLose {
		s.must(damage)
		s.expect(lost == 0, "each acknowledged record is there", "%d of %d are not", lost, acked)
	}
}

func (c *writer) found(pod string) (sum int, err error) {
	upTo := func(last int) int {
		printed, failed := c.Exec(c.ctx, pod, "sh", "-ec", fmt.Sprintf(c.count, last))
		err = errors.Join(err, failed)
		return number(printed)
	}
	sum = upTo(c.last())
	if c.first != nil {
		sum += upTo(c.first.last()) - upTo(ofFirst)
	}
	return sum, err
}

func (s *story) add(what string, n int) { s.SetCount(what, s.Counts()[what]+n) }

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

func (s *story) statefulSetOf(d database) {
	s.statefulSetWith(d.name, func(set *appsv1.StatefulSet) {
		pod := &set.Spec.Template.Spec
		pod.Containers[0].Image = d.image
		pod.TerminationGracePeriodSeconds = new(int64(30))
		// The pod is ready once it has answered. A probe each second costs more than the writes.
		pod.Containers[0].StartupProbe = &corev1.Probe{
			ProbeHandler:     corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"sh", "-c", d.ready}}},
			PeriodSeconds:    1,
			FailureThreshold: 3600,
		}
		evictedSoon(pod)
	})
}
