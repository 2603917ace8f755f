// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func operationsPopulator() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "operations-populator",
		Doc: "A claim is to be filled by a volume populator, and a pod waits for it. The populator has a volume of its own made, writes to it from a pod at another node and hands it over: " +
			"the waiting pod starts by itself once the volume is detached from there, and finds what was written.",
		Modes:   []sandbox.Mode{sandbox.Standalone, sandbox.Cooperative, sandbox.Upstream},
		Shape:   operating,
		Takes:   45 * time.Second,
		Timeout: 6 * time.Minute,
		Run: tell(func(s *story) {
			const here, there = "worker-1", "worker-2"
			claim := sandbox.Claim("data", corev1.ReadWriteOnce)
			claim.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: new("backups.moorage.dev"), Kind: "Backup", Name: "of-yesterday"}
			s.must(s.CreateClaim(s.ctx, claim))
			uid := s.podAt(there, "db", "data")
			p := &populator{story: s, namespace: s.Namespace + "-populator"}
			p.begin()
			node := p.wanted("data")
			s.expect(node == there, "the claim is placed with its pod", "it is for %q", node)
			p.volumeFor("data", node)
			p.fill(here)
			s.say("the populator writes to the volume at %s; db waits for it at %s", here, there)
			handle := p.handOver("data")
			db := s.runs("db")
			s.expect(db.UID == uid && s.handle("data") == handle, "db runs with what the populator has made", "it has %s", s.handle("data"))
			s.goesOn(handle, here, there)
			s.detachedBefore(s.calls(diskapi.ControllerPublish, diskapi.Arrived, handle, there)[0], here)
			s.say("db runs at %s, and finds what the populator has written", there)
			p.end()
		}),
	}
}

// populator works like lib-volume-populator: a pod fills its own claim, and then the PersistentVolume's
// claimRef is changed.
type populator struct {
	*story
	namespace string
}

const prime = "prime"

func (p *populator) begin() {
	_, err := p.Client.CoreV1().Namespaces().Create(p.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}}, metav1.CreateOptions{})
	p.must(err)
	p.until("the populator's namespace has a service account", func() error {
		_, err := p.Client.CoreV1().ServiceAccounts(p.namespace).Get(p.ctx, "default", metav1.GetOptions{})
		return err
	})
}

const selectedNode = "volume.kubernetes.io/selected-node"

func (p *populator) wanted(claim string) (node string) {
	p.until("claim "+claim+" is to be provisioned for a node", func() error {
		c := p.View.Claim(p.Namespace, claim)
		if c == nil || c.Annotations[selectedNode] == "" {
			return errors.New("it is not")
		}
		node = c.Annotations[selectedNode]
		return nil
	})
	return node
}

func (p *populator) volumeFor(claim, node string) {
	own := sandbox.Claim(prime, corev1.ReadWriteOnce)
	own.Annotations = map[string]string{selectedNode: node}
	own.Spec.StorageClassName = p.View.Claim(p.Namespace, claim).Spec.StorageClassName
	_, err := p.Client.CoreV1().PersistentVolumeClaims(p.namespace).Create(p.ctx, own, metav1.CreateOptions{})
	p.must(err)
}

func (p *populator) fill(node string) {
	pod := sandbox.Pod(prime, prime)
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	pods := p.Client.CoreV1().Pods(p.namespace)
	_, err := pods.Create(p.ctx, pod, metav1.CreateOptions{})
	p.must(err)
	p.until("the populator's pod runs", func() error {
		if seen := p.View.Pod(p.namespace, prime); seen == nil || seen.Status.Phase != corev1.PodRunning {
			return errors.New("it does not")
		}
		return nil
	})
	p.finds(p.primeVolume().Spec.CSI.VolumeHandle, node)
	p.must(pods.Delete(p.ctx, prime, metav1.DeleteOptions{}))
	p.until("the populator's pod is gone", func() error {
		if p.View.Pod(p.namespace, prime) != nil {
			return errors.New("it is there")
		}
		return nil
	})
}

func (p *populator) primeVolume() *corev1.PersistentVolume {
	return p.View.Volume(p.View.Claim(p.namespace, prime).Spec.VolumeName)
}

func (p *populator) handOver(claim string) string {
	to, name := p.View.Claim(p.Namespace, claim), p.primeVolume().Name
	volumes := p.Client.CoreV1().PersistentVolumes()
	p.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		pv, err := volumes.Get(p.ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		pv.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: to.Namespace, Name: to.Name, UID: to.UID}
		_, err = volumes.Update(p.ctx, pv, metav1.UpdateOptions{})
		return err
	}))
	p.until("claim "+claim+" has the volume", func() error {
		if c := p.View.Claim(p.Namespace, claim); c.Spec.VolumeName != name || c.Status.Phase != corev1.ClaimBound {
			return fmt.Errorf("it is %s with volume %q", c.Status.Phase, c.Spec.VolumeName)
		}
		return nil
	})
	p.must(p.Client.CoreV1().PersistentVolumeClaims(p.namespace).Delete(p.ctx, prime, metav1.DeleteOptions{}))
	return p.View.Volume(name).Spec.CSI.VolumeHandle
}

func (p *populator) end() {
	p.must(p.Client.CoreV1().Namespaces().Delete(p.ctx, p.namespace, metav1.DeleteOptions{}))
}
