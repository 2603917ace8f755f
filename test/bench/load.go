// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/test/internal/pace"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

const (
	// Pods live on once all run, and the API server is observed after all detaches, for late writes.
	dwell = 2 * time.Second
	hands = 20
	// Bounds each wait: upstream takes two minutes for 200 pods.
	patience = 6 * time.Minute
	// It binds claims before a pod comes.
	immediateClass = "disk-immediate"
)

func podName(i int) string   { return fmt.Sprintf("pod-%03d", i) }
func claimName(i int) string { return fmt.Sprintf("volume-%03d", i) }

func scenario(c Case, mode sandbox.Mode, into *Run) sandbox.Scenario {
	return sandbox.Scenario{
		Name:      "bench",
		Doc:       c.Title(),
		Modes:     []sandbox.Mode{mode},
		Shape:     func(s *sandbox.Shape) { *s = c.shape(mode) },
		Exclusive: true,
		Timeout:   4 * patience,
		Run:       func(ctx context.Context, e *sandbox.Env) error { return measure(ctx, e, c, into) },
	}
}

// measure fills in the measurements as far as they go when a step fails.
func measure(ctx context.Context, e *sandbox.Env, c Case, into *Run) error {
	version, err := e.Client.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("version of the API server: %w", err)
	}
	into.Kubernetes = version.GitVersion
	if c.NotOptedIn {
		if err := optOut(ctx, e); err != nil {
			return err
		}
	}
	if err := provision(ctx, e, c); err != nil {
		return err
	}
	before, err := readCPU(e.Cluster)
	if err != nil {
		return err
	}
	w, loadErr := makeLoad(ctx, e, c)
	after, err := readCPU(e.Cluster)
	if err != nil {
		return errors.Join(loadErr, err)
	}
	into.CPU = after.since(before)
	return errors.Join(loadErr, collect(e, w, into))
}

func optOut(ctx context.Context, e *sandbox.Env) error {
	without := fmt.Appendf(nil, `{"metadata":{"labels":{%q:null}}}`, sandbox.EnforceLabel)
	if _, err := e.Client.CoreV1().Namespaces().Patch(ctx, e.Namespace, types.MergePatchType, without, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("take the namespace out of Moorage: %w", err)
	}
	return nil
}

func provision(ctx context.Context, e *sandbox.Env, c Case) error {
	err := pace.Rate{Hands: hands}.Each(ctx, c.Pods, func(ctx context.Context, i int) error {
		claim := sandbox.Claim(claimName(i), corev1.ReadWriteOnce)
		if !c.FirstUse {
			claim.Spec.StorageClassName = new(immediateClass)
		}
		return e.CreateClaim(ctx, claim)
	})
	if err != nil {
		return err
	}
	if c.FirstUse {
		return e.EventuallyWithin(ctx, patience, "all claims are seen", func() error {
			return missing(len(e.View.Claims(e.Namespace)), c.Pods, "seen")
		})
	}
	return e.EventuallyWithin(ctx, patience, "all claims are bound", func() error {
		bound := 0
		for _, claim := range e.View.Claims(e.Namespace) {
			if claim.Status.Phase != corev1.ClaimBound {
				continue
			}
			if pv := e.View.Volume(claim.Spec.VolumeName); pv != nil && pv.Status.Phase == corev1.VolumeBound {
				bound++
			}
		}
		return errors.Join(missing(bound, c.Pods, "bound"), claimsSay(e, c, corev1.ConditionTrue))
	})
}

// Kubernetes writes Unused in all modes, at kube-controller-manager's pace: otherwise the next phase would
// count these writes.
func claimsSay(e *sandbox.Env, c Case, unused corev1.ConditionStatus) error {
	said := 0
	for _, claim := range e.View.Claims(e.Namespace) {
		for _, condition := range claim.Status.Conditions {
			if condition.Type == corev1.PersistentVolumeClaimUnused && condition.Status == unused {
				said++
			}
		}
	}
	return missing(said, c.Pods, "Unused="+string(unused))
}

type phases struct{ attach, detach window }

func makeLoad(ctx context.Context, e *sandbox.Env, c Case) (phases, error) {
	var w phases
	w.attach.from = time.Now()
	err := attachAll(ctx, e, c)
	w.attach.to = time.Now()
	w.detach.from = w.attach.to
	if err == nil {
		err = detachAll(ctx, e, c)
	}
	w.detach.to = time.Now()
	return w, err
}

func attachAll(ctx context.Context, e *sandbox.Env, c Case) error {
	err := pace.Rate{Hands: hands, Every: c.Every}.Each(ctx, c.Pods, func(ctx context.Context, i int) error {
		return e.CreatePod(ctx, sandbox.Pod(podName(i), claimName(i)))
	})
	if err != nil {
		return err
	}
	err = e.EventuallyWithin(ctx, patience, "all pods run", func() error {
		running := 0
		for _, pod := range e.View.Pods(e.Namespace) {
			switch pod.Status.Phase {
			case corev1.PodRunning:
				running++
			case corev1.PodFailed:
				return sandbox.Never("pod %s failed: %s", pod.Name, pod.Status.Message)
			}
		}
		return errors.Join(missing(running, c.Pods, "running"), claimsSay(e, c, corev1.ConditionFalse))
	})
	if err != nil {
		return err
	}
	return rest(ctx, dwell)
}

func detachAll(ctx context.Context, e *sandbox.Env, c Case) error {
	err := pace.Rate{Hands: hands, Every: c.Every}.Each(ctx, c.Pods, func(ctx context.Context, i int) error {
		return e.DeletePod(ctx, podName(i))
	})
	if err != nil {
		return err
	}
	err = e.EventuallyWithin(ctx, patience, "all volumes are detached", func() error {
		left := len(e.View.Pods(e.Namespace)) + len(e.View.Attachments())
		if left > 0 {
			return fmt.Errorf("%d pods and VolumeAttachments are left", left)
		}
		return claimsSay(e, c, corev1.ConditionTrue)
	})
	if err != nil {
		return err
	}
	return rest(ctx, dwell)
}

func missing(have, want int, what string) error {
	if have < want {
		return fmt.Errorf("%d of %d are %s", have, want, what)
	}
	return nil
}

func collect(e *sandbox.Env, w phases, into *Run) error {
	events, err := e.Audit.Read()
	if err != nil {
		return err
	}
	evidence := evidence{pods: e.Timeline.Pods(), calls: e.View.Calls(diskapi.Filter{}), events: events}
	pods := evidence.journeys(e.Namespace)
	into.Samples = sample(pods)
	into.AllRunning, into.AllDetached = spans(pods)
	into.AttachWrites = writesIn(events, w.attach)
	into.DetachWrites = writesIn(events, w.detach)
	return nil
}

func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
