// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// cordon keeps new pods from that very node.
func cordon(ctx context.Context, c *cluster.Cluster, n *corev1.Node) error {
	patch := fmt.Sprintf(`{"metadata":{"uid":%q},"spec":{"unschedulable":true}}`, n.UID)
	if _, err := c.Kube.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		return command.Failed("cordon node "+n.Name, "patch nodes", err)
	}
	return nil
}

// mayDo asks before anything is changed whether the rights that a drain needs are there. What
// can't be asked is found out on the way.
func mayDo(ctx context.Context, c *cluster.Cluster, node string, pods []*corev1.Pod) error {
	if denied(ctx, c, authorizationv1.ResourceAttributes{Verb: "patch", Resource: "nodes", Name: node}) {
		return fmt.Errorf("node %s is not drained, and nothing was changed: you may not patch it (kubectl auth can-i patch node/%s)", node, node)
	}
	evict := authorizationv1.ResourceAttributes{Verb: "create", Resource: "pods", Subresource: "eviction"}
	if len(pods) == 0 || !denied(ctx, c, evict) {
		return nil
	}
	var namespaces []string
	for _, p := range pods {
		if !slices.Contains(namespaces, p.Namespace) {
			namespaces = append(namespaces, p.Namespace)
		}
	}
	slices.Sort(namespaces)
	for _, namespace := range namespaces {
		if evict.Namespace = namespace; denied(ctx, c, evict) {
			return fmt.Errorf("node %s is not drained, and nothing was changed: you may not evict pods in namespace %s (%s)", node, namespace, canEvict(namespace))
		}
	}
	return nil
}

// orphans are the DaemonSets of pods that are gone. One that can't be read counts as there.
func orphans(ctx context.Context, c *cluster.Cluster, pods []*corev1.Pod, node string) map[types.UID]bool {
	gone := map[types.UID]bool{}
	for _, p := range pods {
		if p.Spec.NodeName != node || !facts.DaemonSet(p) {
			continue
		}
		owner := metav1.GetControllerOf(p)
		_, err := c.Kube.AppsV1().DaemonSets(p.Namespace).Get(ctx, owner.Name, metav1.GetOptions{})
		gone[owner.UID] = apierrors.IsNotFound(err)
	}
	return gone
}

func denied(ctx context.Context, c *cluster.Cluster, what authorizationv1.ResourceAttributes) bool {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}
	review, err := c.Kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	return err == nil && !review.Status.Allowed
}

func canEvict(namespace string) string {
	return "kubectl auth can-i create pods --subresource=eviction -n " + namespace
}

// evictionPatience is for how long the API server may take for an eviction: its webhooks are
// asked before.
const evictionPatience = 30 * time.Second

// evictPod asks for the eviction of that very pod, once: who refuses is asked again later, and
// not by the client on its own.
func (d *drainer) evictPod(ctx context.Context, c *cluster.Cluster, p *corev1.Pod) answer {
	ctx, cancel := context.WithTimeout(ctx, evictionPatience)
	defer cancel()
	options := &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.UID))}
	if d.dryRun == dryRunServer {
		options.DryRun = []string{metav1.DryRunAll}
	}
	if d.grace >= 0 {
		options.GracePeriodSeconds = &d.grace
	}
	err := c.Kube.PolicyV1().RESTClient().Post().AbsPath("/api/v1").Namespace(p.Namespace).
		Resource("pods").Name(p.Name).SubResource("eviction").MaxRetries(0).Body(&policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}, DeleteOptions: options,
	}).Do(ctx).Error()
	return answerOf(err, p.Namespace)
}

// answerOf reads what came of an eviction. That the pod is gone, or is another one, shows in the
// cluster: an admission webhook may say the same of a pod that is there.
func answerOf(err error, namespace string) answer {
	switch {
	case err == nil:
		return answer{ifNot: "the API server has agreed to its eviction, and it is not being deleted"}
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return answer{ifNot: err.Error()}
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), `cannot create resource "pods/eviction"`):
		return answer{refusal: refusal{why: err.Error() + " (" + canEvict(namespace) + ")", good: true}}
	}
	return answer{refusal: refusal{why: err.Error(), good: strings.Contains(err.Error(), "more than one PodDisruptionBudget")}}
}
