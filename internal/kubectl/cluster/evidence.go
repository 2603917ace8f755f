// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"sync"

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
