// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// maxSubjects bounds the objects whose events are asked for, one request each.
const maxSubjects = 64

// maxEvents bounds the events that are read of one object.
const maxEvents = 200

// Object is an object whose events are read.
type Object struct {
	Namespace string
	UID       types.UID
}

// ReadEvidence reads what names causes that are not a volume's: the events of the objects.
// What may not be read is left out, and said.
func (c *Cluster) ReadEvidence(ctx context.Context, w *facts.World, objects []Object) {
	var mu sync.Mutex
	var wait sync.WaitGroup
	if w.Evidence.Asked == nil {
		w.Evidence.Asked = map[types.UID]bool{}
	}
	for _, o := range objects[:min(len(objects), maxSubjects)] {
		if w.Evidence.Asked[o.UID] {
			continue
		}
		w.Evidence.Asked[o.UID] = true
		wait.Go(func() {
			options := metav1.ListOptions{Limit: maxEvents, FieldSelector: fields.OneTermEqualSelector("involvedObject.uid", string(o.UID)).String()}
			list, err := c.Kube.CoreV1().Events(o.Namespace).List(ctx, options)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				w.Evidence.Unseen = &facts.Unseen{Resource: "events", Message: err.Error(), Failed: !apierrors.IsForbidden(err)}
				return
			}
			w.Evidence.Events = append(w.Evidence.Events, list.Items...)
		})
	}
	wait.Wait()
}

// ReadStarting reads the events of pods whose volumes may be mounted and that have not started.
func (c *Cluster) ReadStarting(ctx context.Context, w *facts.World) {
	var objects []Object
	for _, p := range w.Starting() {
		objects = append(objects, Object{p.Namespace, p.UID})
	}
	c.ReadEvidence(ctx, w, objects)
}

// starting has the worlds of a cluster that is followed say what ReadStarting reads. What is known
// of a pod is read again after LeasesAgain. Nil reads nothing.
type starting struct {
	evidence facts.Evidence
	since    time.Time
}

// read reads what is not known yet of a world that nobody else has so far.
func (s *starting) read(ctx context.Context, c *Cluster, w *facts.World) {
	if s == nil {
		return
	}
	if now := time.Now(); now.Sub(s.since) >= LeasesAgain {
		s.evidence, s.since = facts.Evidence{}, now
	}
	w.Evidence = s.evidence
	w.Evidence.Asked, w.Evidence.Events = maps.Clone(s.evidence.Asked), slices.Clone(s.evidence.Events)
	c.ReadStarting(ctx, w)
	s.evidence = w.Evidence
}

// changes says whether what was read may say something else later, though nothing else changes.
func (s *starting) changes() bool { return s != nil && len(s.evidence.Asked) > 0 }

// PodAndClaims are a pod and its claims, whose events say why it does not start.
func PodAndClaims(w *facts.World, p *corev1.Pod) []Object {
	list := []Object{{p.Namespace, p.UID}}
	for _, v := range p.Spec.Volumes {
		name := p.Name + "-" + v.Name
		if v.PersistentVolumeClaim != nil {
			name = v.PersistentVolumeClaim.ClaimName
		} else if v.Ephemeral == nil {
			continue
		}
		if claim := w.Claim(p.Namespace, name); claim != nil && claim.Spec.VolumeName == "" {
			list = append(list, Object{claim.Namespace, claim.UID})
		}
	}
	return list
}
