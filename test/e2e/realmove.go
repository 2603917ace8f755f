// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func realNodes(shape *sandbox.Shape) {
	shape.Real = true
	shape.Nodes, shape.Slots = 2, 4
	shape.KubeletStatusInterval = time.Second
	shape.Operations.On = true // file systems besides ext4, and expansion
}

func realMove() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "real-move",
		Doc: "Containers run and disks are mounted. A pod writes to volumes with ext4, with XFS and without a file system, and syncs nothing. The one with XFS is expanded while it is in use. " +
			"The pod goes, and its successor on another node reads the same. Then the file systems are clean. It needs root, and make real.",
		Modes: []sandbox.Mode{sandbox.Standalone, sandbox.Cooperative, sandbox.Upstream},
		Shape: realNodes,
		Extra: true,
		Takes: 30 * time.Second,
		Run: tell(func(s *story) {
			s.claim("ext4")
			s.claimWith("xfs", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = new("disk-xfs") })
			s.claimWith("raw", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) })
			s.realPodAt("worker-1", "writes")
			s.runs("writes")
			handles := map[string]string{"ext4": s.handle("ext4"), "xfs": s.handle("xfs"), "raw": s.handle("raw")}
			written := s.run("writes", `seq 1 300000 >/v0/numbers; seq 7 400000 >/v1/numbers; seq 3 200000 | dd of=/raw bs=4k conv=notrunc 2>/dev/null; `+realSums)
			s.say("a pod has written to %d volumes on worker-1", len(handles))
			before := s.run("writes", realSize)
			s.expand("xfs", "2Gi")
			s.expanded("xfs", "2Gi", "writes")
			after := s.run("writes", realSize)
			s.expect(number(after) > number(before)*3/2, "the pod sees a larger file system", "it had %s KiB and has %s", before, after)
			s.remove("writes")
			s.realPodAt("worker-2", "reads")
			s.runs("reads")
			read := s.run("reads", realSums)
			s.expect(read == written, "the successor reads the same", "it was\n%s and is\n%s", written, read)
			s.say("its successor on worker-2 has read the same")
			s.remove("reads")
			s.gone("reads")
			for _, claim := range []string{"ext4", "xfs"} {
				s.leavesEveryNode(claim)
				s.must(s.Cluster.CheckDisk(s.ctx, handles[claim]))
			}
			s.say("both file systems are clean")
		}),
	}
}

func realPowerOff() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "real-power-off",
		Doc: "Containers run and disks are mounted. A pod flushes a file and writes another without flushing it, and its machine loses power: all its processes and devices are gone. " +
			"With the out-of-service taint a successor elsewhere finds the first file, and the second is lost. The machine boots, and runs pods. It needs root, and make real.",
		Modes: []sandbox.Mode{sandbox.Standalone, sandbox.Upstream},
		Shape: func(shape *sandbox.Shape) {
			realNodes(shape)
			shape.NodeMonitorGracePeriod = 20 * time.Second
		},
		Extra: true,
		Takes: time.Minute,
		Run: tell(func(s *story) {
			old := s.evictable()
			from, handle := old.Spec.NodeName, s.handle("data")
			s.run(old.Name, `seq 100000 | dd of=/v0/kept conv=fsync 2>/dev/null; echo lost >/v0/lost; cat /v0/lost`)
			s.must(s.Cluster.PowerOff(s.ctx, from))
			devices, err := s.Cluster.Devices(from)
			s.must(err)
			s.expect(len(devices) == 0, "a machine without power has no devices", "it has %v", devices)
			s.say("%s, where %s runs, has lost its power", from, old.Name)
			replacement := s.replaced(old)
			s.never(diskapi.ControllerUnpublish, handle, from)
			s.taint(from, outOfService())
			s.runs(replacement.Name)
			found := s.run(replacement.Name, `seq 100000 | cmp - /v0/kept && echo kept; cat /v0/lost 2>/dev/null || true`)
			s.expect(found == "kept", "what was flushed is there, and nothing else", "found %q", found)
			s.say("%s has found on %s what was flushed, and nothing else", replacement.Name, replacement.Spec.NodeName)
			s.must(s.Cluster.PowerOn(s.ctx, from))
			s.nodeIs(from, true)
			s.untaint(from, outOfService())
			s.until("the pod that was switched off is gone", func() error { return s.PodGone(old.Name) })
			s.claim("other")
			s.podAt(from, "after", "other")
			s.runs("after")
			s.run("after", "echo written >/v0/file; sync")
			s.say("%s runs pods again", from)
			s.must(s.Client.AppsV1().Deployments(s.Namespace).Delete(s.ctx, "web", metav1.DeleteOptions{}))
			s.gone(replacement.Name)
			s.leavesEveryNode("data")
			s.must(s.Cluster.CheckDisk(s.ctx, handle))
		}),
	}
}

const realSums = `md5sum /v0/numbers /v1/numbers; head -c 1000000 /raw | md5sum`

// xfs grows while it is mounted. ext4 does so only with CAP_SYS_RESOURCE, which root in a virtual machine
// may not have.
const realSize = `df -k /v1 | awk 'END {print $2}'`

func (s *story) realPodAt(node, name string) {
	pod := sandbox.Pod(name, "ext4", "xfs")
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "raw", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "raw"},
	}})
	pod.Spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: "raw", DevicePath: "/raw"}}
	s.must(s.CreatePod(s.ctx, pod))
}

func (s *story) claimWith(name string, change func(*corev1.PersistentVolumeClaim)) {
	claim := sandbox.Claim(name, corev1.ReadWriteOnce)
	change(claim)
	s.must(s.CreateClaim(s.ctx, claim))
}

func (s *story) run(pod, script string) string {
	out, err := s.Exec(s.ctx, pod, "sh", "-ec", script)
	s.must(err)
	return strings.TrimSpace(out)
}

func number(text string) int {
	n := 0
	_, _ = fmt.Sscan(text, &n)
	return n
}
