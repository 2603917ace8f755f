// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"maps"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/work"
)

// Tracer follows pods, and sends the trace of each that runs. All methods are safe for
// parallel use, and do nothing on nil.
type Tracer struct {
	provider *sdk.TracerProvider

	mu    sync.Mutex
	paths map[string]*path // of pods on their way, by UID
	gone  work.Sweep       // of paths
}

// New returns a Tracer that gives spans to a processor.
func New(to sdk.SpanProcessor, version string) *Tracer {
	return &Tracer{
		provider: sdk.NewTracerProvider(
			sdk.WithSpanProcessor(to), sdk.WithIDGenerator(derivedIDs{}), sdk.WithSampler(sdk.AlwaysSample()),
			sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", "moorage"), attribute.String("service.version", version))),
		),
		paths: map[string]*path{},
	}
}

// Look notes how far a pod has come. A pod is followed from when it is first seen, unless it
// runs by then.
func (t *Tracer) Look(s ledger.Snapshot, pod *ledger.Pod, phase corev1.PodPhase, now time.Time) {
	if t == nil || pod.Phase != ledger.PodLive {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.paths[pod.UID]
	if p == nil && phase != corev1.PodPending {
		return
	}
	if p == nil {
		t.sweep(s)
		p = newPath(pod.Namespace, pod.Name, pod.UID, pod.Created, pod.Node != "", now)
		t.paths[pod.UID] = p
	}
	p.look(s, pod, now)
}

// Pod is called with each pod that is seen to have changed. It begins to follow one that is
// new and may have volumes, ends the trace of one that has begun to run, and gives up that
// of one that never will.
func (t *Tracer) Pod(object *corev1.Pod, facts func() ledger.Snapshot, now time.Time) {
	if t == nil {
		return
	}
	uid := string(object.UID)
	if object.Status.Phase == corev1.PodPending && object.DeletionTimestamp == nil {
		if object.Spec.NodeName == "" && len(object.Spec.Volumes) > 0 {
			t.begin(object, facts, now)
		}
		return
	}
	t.mu.Lock()
	p := t.paths[uid]
	delete(t.paths, uid)
	t.mu.Unlock()
	if p == nil || object.Status.Phase != corev1.PodRunning {
		return
	}
	s := facts()
	if pod := s.Pod(uid); pod != nil && p.looked {
		p.look(s, pod, now)
	}
	if len(p.volumes) > 0 {
		p.end(t.provider, now)
	}
}

// begin follows a pod from now on, if it is not followed yet: what happens to it may be
// over by the time that it is looked at.
func (t *Tracer) begin(object *corev1.Pod, facts func() ledger.Snapshot, now time.Time) {
	uid := string(object.UID)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.paths[uid] != nil {
		return
	}
	s := facts()
	t.sweep(s)
	p := newPath(object.Namespace, object.Name, uid, object.CreationTimestamp.Unix(), false, now)
	if pod := s.Pod(uid); pod != nil {
		p.look(s, pod, now)
	}
	t.paths[uid] = p
}

// sweep forgets the pods that were deleted on their way. mu is held.
func (t *Tracer) sweep(s ledger.Snapshot) {
	if !t.gone.Due(len(t.paths)) {
		return
	}
	maps.DeleteFunc(t.paths, func(uid string, _ *path) bool { return s.Pod(uid) == nil })
	t.gone.Left(len(t.paths))
}

// Close sends what is not sent yet.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}
