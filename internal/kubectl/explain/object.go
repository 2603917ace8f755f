// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
	"github.com/moorage-dev/moorage/internal/ledger"
)

func explainPod(ctx context.Context, c *cluster.Cluster, w *facts.World, name string) (answer, error) {
	pod := w.Pod(c.Namespace, name)
	if pod == nil {
		return answer{}, command.Elsewhere(command.Missing(w.Unseen, "pods", c.Namespace, name), w.Pods, name)
	}
	c.ReadEvidence(ctx, w, cluster.PodAndClaims(w, pod))
	x := w.ExplainPod(pod)
	return answer{"PodExplanation", x.Answer, x, x.Unseen, func(b *command.Base, s screen.Style, wide bool) error {
		return screen.Pod(b.Streams.Out, s, x, w.Now, wide)
	}}, nil
}

func explainClaim(ctx context.Context, c *cluster.Cluster, w *facts.World, name string) (answer, error) {
	claim := w.Claim(c.Namespace, name)
	if claim == nil {
		return answer{}, command.Elsewhere(command.Missing(w.Unseen, "persistentvolumeclaims", c.Namespace, name), w.Claims, name)
	}
	objects := []cluster.Object{{Namespace: claim.Namespace, UID: claim.UID}}
	for _, pod := range w.UsersOf(claim) {
		if claim.Spec.VolumeName == "" && pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil {
			objects = append(objects, cluster.PodAndClaims(w, pod)...)
		}
	}
	c.ReadEvidence(ctx, w, objects)
	return ofStorage(w, "pvc", "ClaimExplanation", w.ExplainClaim(claim)), nil
}

func explainVolume(ctx context.Context, c *cluster.Cluster, w *facts.World, name string) (answer, error) {
	pv := w.PersistentVolume(name)
	if pv == nil {
		return answer{}, command.Missing(w.Unseen, "persistentvolumes", "", name)
	}
	return ofStorage(w, "pv", "VolumeExplanation", w.ExplainPersistentVolume(pv)), nil
}

func ofStorage(w *facts.World, word, kind string, x facts.Storage) answer {
	return answer{kind, x.Answer, x, x.Unseen, func(b *command.Base, s screen.Style, wide bool) error {
		return screen.Storage(b.Streams.Out, s, word, x, w.Now, wide)
	}}
}

func explainNode(ctx context.Context, c *cluster.Cluster, w *facts.World, name string) (answer, error) {
	node := w.Node(name)
	if gone := w.NodeGone(name); node == nil && gone != "" {
		return answer{}, &command.NotFoundError{Message: gone}
	} else if node == nil {
		return answer{}, command.Missing(w.Unseen, "nodes", "", name)
	}
	x := w.ExplainNode(node)
	return answer{"NodeExplanation", x.Answer, x, x.Unseen, func(b *command.Base, s screen.Style, wide bool) error {
		return screen.Node(b.Streams.Out, s, x, w.Now, wide)
	}}, nil
}

func explainTicket(_ context.Context, c *cluster.Cluster, w *facts.World, name string) (answer, error) {
	x, ok := w.ExplainTicket(c.Namespace, name)
	if hidden := command.UnreadTicket(w, c.Namespace, name); !ok && hidden != nil {
		return answer{}, hidden
	}
	if pod := w.Pod(c.Namespace, name); !ok && pod != nil {
		return answer{}, &command.NotFoundError{Message: fmt.Sprintf("volumetickets %q not found in namespace %q; the pod of that name needs none once it is bound: kubectl moorage explain pod %s -n %s",
			name, c.Namespace, name, c.Namespace)}
	} else if !ok {
		return answer{}, command.Missing(w.Unseen, "volumetickets", c.Namespace, name)
	}
	return answer{"TicketExplanation", x.Answer, x, nil, func(b *command.Base, s screen.Style, wide bool) error {
		return screen.Ticket(b.Streams.Out, s, x, w.Now, wide)
	}}, nil
}

// explainSnapshot explains the ticket that Moorage has made for a VolumeSnapshot, whose own object is the snapshot
// controller's to explain.
func explainSnapshot(ctx context.Context, c *cluster.Cluster, w *facts.World, name string) (answer, error) {
	if !w.Served() {
		return answer{}, fmt.Errorf("Moorage is not installed in this cluster, and makes no tickets for snapshots. The state of this one: kubectl describe volumesnapshot %s -n %s", name, c.Namespace)
	}
	if t, ok := w.OperationTicket(ledger.OperationSnapshot, "VolumeSnapshot", c.Namespace, name); ok {
		return explainTicket(ctx, c, w, t.Name)
	}
	if hidden := command.UnreadTicket(w, c.Namespace, ""); hidden != nil {
		return answer{}, fmt.Errorf("what volumesnapshots %q waits for is not known: %w", name, hidden)
	}
	return answer{}, &command.NotFoundError{Message: fmt.Sprintf("there is no ticket for volumesnapshots %q in namespace %q: the snapshot is done, or is one of a group, or no AttachPolicy with attachFor or detachFor: [Snapshot] is for its driver, or there is no such snapshot. "+
		"Its own state: kubectl describe volumesnapshot %s -n %s", name, c.Namespace, name, c.Namespace)}
}

// workload explains the pods of a workload together. wants is the field that says how many it is to have.
func workload(kind, group, plural string, wants ...string) func(context.Context, *cluster.Cluster, *facts.World, string) (answer, error) {
	return func(ctx context.Context, c *cluster.Cluster, w *facts.World, name string) (answer, error) {
		var o unstructured.Unstructured
		raw, err := c.Kube.CoreV1().RESTClient().Get().SetHeader("Accept", "application/json").AbsPath("/apis", group, "v1/namespaces", c.Namespace, plural, name).Do(ctx).Raw()
		if err == nil {
			err = o.UnmarshalJSON(raw)
		}
		if apierrors.IsNotFound(err) {
			return answer{}, command.Missing(nil, plural+"."+group, c.Namespace, name)
		} else if err != nil {
			return answer{}, err
		}
		n, given, err := unstructured.NestedInt64(o.Object, wants...)
		if err != nil || !given {
			n = 1 // the API's default
		}
		_, completed, _ := unstructured.NestedString(o.Object, "status", "completionTime")
		if suspended, _, _ := unstructured.NestedBool(o.Object, "spec", "suspend"); completed || suspended { // a Job's
			n = 0
		}
		owner := facts.Owner{Kind: kind, Namespace: c.Namespace, Name: name, Wants: int32(n), UIDs: []types.UID{o.GetUID()}}
		if kind == "Deployment" { // whose ReplicaSets' pods are its own
			sets, err := c.Kube.AppsV1().ReplicaSets(c.Namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return answer{}, err
			}
			for i := range sets.Items {
				if metav1.IsControlledBy(&sets.Items[i], &o) {
					owner.UIDs = append(owner.UIDs, sets.Items[i].UID)
				}
			}
		}
		var objects []cluster.Object
		for _, uid := range owner.UIDs {
			objects = append(objects, cluster.Object{Namespace: owner.Namespace, UID: uid})
		}
		for _, pod := range w.PodsOf(owner) {
			if pod.Status.Phase == corev1.PodPending || pod.Status.Phase == corev1.PodRunning {
				objects = append(objects, cluster.PodAndClaims(w, pod)...)
			}
		}
		c.ReadEvidence(ctx, w, objects)
		x := w.ExplainWorkload(owner)
		return answer{"WorkloadExplanation", x.Answer, x, x.Unseen, func(b *command.Base, s screen.Style, wide bool) error {
			return screen.Workload(b.Streams.Out, s, x, w.Now, wide)
		}}, nil
	}
}
