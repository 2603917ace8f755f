// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
	c.ReadNamed(ctx, w, []*corev1.Pod{pod})
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

// workload reads a workload: who its pods belong to, and how many it wants.
type workload func(ctx context.Context, c *cluster.Cluster, name string) (facts.Owner, error)

func ofWorkload(read workload) func(context.Context, *cluster.Cluster, *facts.World, string) (answer, error) {
	return func(ctx context.Context, c *cluster.Cluster, w *facts.World, name string) (answer, error) {
		owner, err := read(ctx, c, name)
		switch {
		case apierrors.IsNotFound(err):
			return answer{}, notFound(ctx, c, err, name)
		case err != nil:
			return answer{}, err
		}
		var objects []cluster.Object
		for _, uid := range owner.UIDs {
			objects = append(objects, cluster.Object{Namespace: owner.Namespace, UID: uid})
		}
		pods := w.PodsOf(owner)
		for _, pod := range pods {
			if pod.Status.Phase == corev1.PodPending || pod.Status.Phase == corev1.PodRunning {
				objects = append(objects, cluster.PodAndClaims(w, pod)...)
			}
		}
		c.ReadEvidence(ctx, w, objects)
		c.ReadNamed(ctx, w, pods)
		x := w.ExplainWorkload(owner)
		return answer{"WorkloadExplanation", x.Answer, x, x.Unseen, func(b *command.Base, s screen.Style, wide bool) error {
			return screen.Workload(b.Streams.Out, s, x, w.Now, wide)
		}}, nil
	}
}

// notFound is the error for a workload that is not there, with one of nearly the same name, or of the
// same in another namespace, as far as workloads of the kind may be listed.
func notFound(ctx context.Context, c *cluster.Cluster, err error, name string) error {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return &command.NotFoundError{Message: fmt.Sprintf("%s in namespace %q", err, c.Namespace)}
	}
	details := status.Status().Details
	all := workloads(ctx, c, details.Kind, metav1.NamespaceAll)
	if len(all) == 0 {
		all = workloads(ctx, c, details.Kind, c.Namespace) // who may not list all may list these
	}
	missing := command.Missing(nil, details.Kind+"."+details.Group, c.Namespace, name)
	return command.Elsewhere(missing, all, name)
}

// workloads lists the workloads of a kind, by its plural; none where they may not be listed.
func workloads(ctx context.Context, c *cluster.Cluster, plural, namespace string) []metav1.Object {
	var list runtime.Object
	var err error
	switch apps, all := c.Kube.AppsV1(), (metav1.ListOptions{}); plural {
	case "deployments":
		list, err = apps.Deployments(namespace).List(ctx, all)
	case "statefulsets":
		list, err = apps.StatefulSets(namespace).List(ctx, all)
	case "daemonsets":
		list, err = apps.DaemonSets(namespace).List(ctx, all)
	case "replicasets":
		list, err = apps.ReplicaSets(namespace).List(ctx, all)
	case "jobs":
		list, err = c.Kube.BatchV1().Jobs(namespace).List(ctx, all)
	default:
		return nil
	}
	if err != nil {
		return nil
	}
	var objects []metav1.Object
	err = meta.EachListItem(list, func(o runtime.Object) error {
		object, err := meta.Accessor(o)
		objects = append(objects, object)
		return err
	})
	if err != nil {
		return nil
	}
	return objects
}

func ownerOf(kind string, o metav1.Object, wants *int32, more ...types.UID) facts.Owner {
	n := int32(1) // the API's default
	if wants != nil {
		n = *wants
	}
	return facts.Owner{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), Wants: n, UIDs: append([]types.UID{o.GetUID()}, more...)}
}

func statefulSet(ctx context.Context, c *cluster.Cluster, name string) (facts.Owner, error) {
	o, err := c.Kube.AppsV1().StatefulSets(c.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return facts.Owner{}, err
	}
	return ownerOf("StatefulSet", o, o.Spec.Replicas), nil
}

func replicaSet(ctx context.Context, c *cluster.Cluster, name string) (facts.Owner, error) {
	o, err := c.Kube.AppsV1().ReplicaSets(c.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return facts.Owner{}, err
	}
	return ownerOf("ReplicaSet", o, o.Spec.Replicas), nil
}

func daemonSet(ctx context.Context, c *cluster.Cluster, name string) (facts.Owner, error) {
	o, err := c.Kube.AppsV1().DaemonSets(c.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return facts.Owner{}, err
	}
	return ownerOf("DaemonSet", o, &o.Status.DesiredNumberScheduled), nil
}

// job wants as many pods as it runs side by side: those that ended well are done.
func job(ctx context.Context, c *cluster.Cluster, name string) (facts.Owner, error) {
	o, err := c.Kube.BatchV1().Jobs(c.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return facts.Owner{}, err
	}
	none := int32(0)
	if o.Status.CompletionTime != nil || o.Spec.Suspend != nil && *o.Spec.Suspend {
		return ownerOf("Job", o, &none), nil
	}
	return ownerOf("Job", o, o.Spec.Parallelism), nil
}

// deployment includes its ReplicaSets, whose pods are its own.
func deployment(ctx context.Context, c *cluster.Cluster, name string) (facts.Owner, error) {
	o, err := c.Kube.AppsV1().Deployments(c.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return facts.Owner{}, err
	}
	selector, err := metav1.LabelSelectorAsSelector(o.Spec.Selector)
	if err != nil {
		return facts.Owner{}, fmt.Errorf("deployment %s: its selector: %w", name, err)
	}
	sets, err := c.Kube.AppsV1().ReplicaSets(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return facts.Owner{}, err
	}
	var uids []types.UID
	for i := range sets.Items {
		if metav1.IsControlledBy(&sets.Items[i], o) {
			uids = append(uids, sets.Items[i].UID)
		}
	}
	owner := ownerOf("Deployment", o, o.Spec.Replicas, uids...)
	owner.Paused = o.Spec.Paused
	owner.Behind = o.Status.UpdatedReplicas < owner.Wants
	return owner, nil
}
