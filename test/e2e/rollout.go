// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// rollout guards the oldest pain (kubernetes#26567): a Deployment with a
// ReadWriteOnce claim rolls out, the new pod is placed on another node, and
// hangs there because the old pod, which is to stay until the new one is
// ready, holds the volume.
func rollout() sandbox.Scenario {
	return sandbox.Scenario{
		Name:  "rollout",
		Doc:   "A Deployment with an RWO claim, maxSurge 1 and a soft spread constraint rolls out. Upstream: the new pod is bound to another node and never runs.",
		Modes: []sandbox.Mode{sandbox.Upstream, sandbox.UpstreamTuned},
		Run: func(ctx context.Context, e *sandbox.Env) error {
			if err := e.CreateClaim(ctx, sandbox.Claim("data", corev1.ReadWriteOnce)); err != nil {
				return err
			}
			if err := e.CreateDeployment(ctx, rollingDeployment()); err != nil {
				return err
			}
			var old *corev1.Pod
			if err := e.Eventually(ctx, "the first pod runs", func() (err error) {
				old, err = onlyPod(e)
				return err
			}); err != nil {
				return err
			}
			e.Log("%s runs on %s; rolling out a new version", old.Name, old.Spec.NodeName)
			if err := rollOut(ctx, e); err != nil {
				return err
			}
			return expectStuck(ctx, e, old)
		},
	}
}

// rollingDeployment keeps the old pod until the new one is ready, and prefers
// another node for the new one. It counts as failed soon when it is stuck.
func rollingDeployment() *appsv1.Deployment {
	d := sandbox.Deployment("web", "data")
	d.Spec.Strategy = appsv1.DeploymentStrategy{
		Type: appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{
			MaxSurge:       new(intstr.FromInt32(1)),
			MaxUnavailable: new(intstr.FromInt32(0)),
		},
	}
	d.Spec.ProgressDeadlineSeconds = new(int32(20))
	d.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew:           1,
		TopologyKey:       corev1.LabelHostname,
		WhenUnsatisfiable: corev1.ScheduleAnyway,
		LabelSelector:     d.Spec.Selector,
	}}
	return d
}

// onlyPod returns the Deployment's one pod once it runs.
func onlyPod(e *sandbox.Env) (*corev1.Pod, error) {
	pods := e.PodsOf(sandbox.AppLabel, "web")
	if len(pods) != 1 {
		return nil, fmt.Errorf("there are %d pods", len(pods))
	}
	return pods[0], e.Running(pods[0].Name)
}

// rollOut changes the Deployment's template.
func rollOut(ctx context.Context, e *sandbox.Env) error {
	patch := []byte(`{"spec":{"template":{"metadata":{"annotations":{"version":"2"}}}}}`)
	_, err := e.Client.AppsV1().Deployments(e.Namespace).Patch(ctx, "web", types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("roll out: %w", err)
	}
	return nil
}

// expectStuck is upstream's outcome: the new pod is on another node and told
// why it can't run, the disk was never asked to go there, and the Deployment
// itself gives the rollout up.
func expectStuck(ctx context.Context, e *sandbox.Env, old *corev1.Pod) error {
	handle, err := e.Handle("data")
	if err != nil {
		return err
	}
	var fresh *corev1.Pod
	if err := e.Eventually(ctx, "the new pod is bound to another node", func() error {
		for _, pod := range e.PodsOf(sandbox.AppLabel, "web") {
			if pod.UID != old.UID && pod.Spec.NodeName != "" {
				fresh = pod
			}
		}
		switch {
		case fresh == nil:
			return fmt.Errorf("no new pod is bound yet")
		case fresh.Spec.NodeName == old.Spec.NodeName:
			return sandbox.Never("the new pod %s is on the old one's node %s", fresh.Name, old.Spec.NodeName)
		}
		return nil
	}); err != nil {
		return err
	}
	e.Log("%s is bound to %s, away from its volume", fresh.Name, fresh.Spec.NodeName)
	if err := e.Eventually(ctx, "the new pod is told that its volume is elsewhere", func() error {
		if e.Event("Pod", fresh.Name, "FailedAttachVolume", "already used by pod(s) "+old.Name) == nil {
			return fmt.Errorf("no such event yet")
		}
		return nil
	}); err != nil {
		return err
	}
	if err := e.Eventually(ctx, "the Deployment gives the rollout up", func() error {
		for _, c := range e.View.Deployment(e.Namespace, "web").Status.Conditions {
			if c.Type == appsv1.DeploymentProgressing && c.Reason == "ProgressDeadlineExceeded" {
				return nil
			}
		}
		return fmt.Errorf("it is still progressing")
	}); err != nil {
		return err
	}
	calls := e.View.Calls(diskapi.Filter{Call: diskapi.ControllerPublish, Volume: handle, Node: diskapi.NodeID(fresh.Spec.NodeName)})
	if err := e.Expect(len(calls) == 0, "the volume is never published at the new node", "it was, %d times", len(calls)); err != nil {
		return err
	}
	return e.Expect(e.Running(fresh.Name) != nil && e.Running(old.Name) == nil,
		"the old pod runs and the new one doesn't", "old: %v, new: %v", e.Running(old.Name), e.Running(fresh.Name))
}
