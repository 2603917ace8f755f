// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulingcorev1 "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/translate"
)

// nodeCause says that the node to which a pod is bound is gone or not ready; nil
// when it is there and ready.
func (w *World) nodeCause(p *corev1.Pod) *Cause {
	name := p.Spec.NodeName
	if name == "" || w.unseen("nodes") || w.isReady(ledger.NodeName(name)) {
		return nil
	}
	node := w.Node(name)
	if node == nil {
		return &Cause{Of: OfNode, Code: string(arbiter.NodeMissing),
			Message: fmt.Sprintf("it is bound to %s, and there is no such node", name),
			Do:      fmt.Sprintf("If the machine is gone for good, delete the pod: kubectl delete pod -n %s %s. %s", p.Namespace, p.Name, whoMakesAnother(p))}
	}
	c := &Cause{Of: OfNode, Code: "NodeNotReady", Since: w.notReadySince(ledger.NodeName(name)),
		Message: fmt.Sprintf("its node %s is not ready, so that nothing starts or ends there", name),
		Do:      "See why: kubectl describe node " + name + ". If its machine is off for certain: kubectl moorage explain node " + name}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionFalse && condition.Message != "" {
			c.Message += ": " + shortened(condition.Message, "")
		}
	}
	if is, _ := w.leads(kubeControllerManager); is == lapsed {
		c.Do = "Have kube-controller-manager run, without which no pod is deleted or made again: its Lease in kube-system is over. " + c.Do
	}
	return c
}

// whoMakesAnother says who makes a pod again when it is gone.
func whoMakesAnother(p *corev1.Pod) string {
	switch owner := metav1.GetControllerOf(p); {
	case owner == nil:
		return "No controller makes it again: create it anew where it is still needed"
	case ofPod(p) != nil:
		return fmt.Sprintf("It belongs to pod %s, whose own controller decides about it", owner.Name)
	case owner.Kind == "Job":
		return "Its Job makes another one, unless its backoffLimit is reached"
	}
	return "Its controller makes another one"
}

// deletedAt is when a pod's deletion was asked for: its deletionTimestamp is when its
// grace period ends.
func deletedAt(p *corev1.Pod) time.Time {
	at := p.DeletionTimestamp.Time
	if p.DeletionGracePeriodSeconds != nil {
		at = at.Add(-time.Duration(*p.DeletionGracePeriodSeconds) * time.Second)
	}
	return at
}

// terminatingCause says why a pod that is being deleted does not go: its node is
// gone or not ready, so that no kubelet ends it, or its kubelet says that it can't. It is nil
// if the kubelet ends the pod.
func (w *World) terminatingCause(p *corev1.Pod) *Cause {
	name := p.Spec.NodeName
	if name == "" || w.unseen("nodes") || w.isReady(ledger.NodeName(name)) {
		return w.notEndedCause(p)
	}
	c := &Cause{Of: OfNode, Code: "TerminatingAtDeadNode", Since: w.terminatingSince(p)}
	node := w.Node(name)
	is, _ := w.leads(kubeControllerManager)
	switch {
	case (node == nil || outOfService(node)) && len(p.Finalizers) > 0:
		c.Message = fmt.Sprintf("%s is Terminating on %s, which is gone or out of service, and its finalizer %s keeps it", p.Name, name, p.Finalizers[0])
		c.Do = "Find who set the finalizer, and why they don't take it away: kubectl get pod -n " + p.Namespace + " " + p.Name + " -o yaml"
	case (node == nil || outOfService(node)) && is == lapsed:
		c.Message = fmt.Sprintf("%s is Terminating on %s, which is gone or out of service: kube-controller-manager, which deletes such pods, is down, by its Lease in kube-system", p.Name, name)
		c.Do = "Have kube-controller-manager run"
	case node == nil:
		c.Message = fmt.Sprintf("%s is Terminating on %s, which does not exist any more: Kubernetes' pod garbage collector deletes it within a minute or two", p.Name, name)
		c.Do = "If it stays, see that kube-controller-manager runs. Its volumes are detached only when the machine is known to be off"
	case outOfService(node):
		c.Message = fmt.Sprintf("%s is Terminating on %s, which is not ready and has the taint %s: Kubernetes' pod garbage collector deletes it within a minute, and it can be replaced then",
			p.Name, name, corev1.TaintNodeOutOfService)
		c.Do = "If it stays, see that kube-controller-manager runs"
	case w.kubeletLives(node):
		return w.notEndedCause(p) // its kubelet ends it
	case p.DeletionTimestamp.After(w.Now):
		c.Message = fmt.Sprintf("%s is Terminating on %s, which is not ready: it may still end by itself, its grace period is over in %s",
			p.Name, name, told(p.DeletionTimestamp.Sub(w.Now)))
		c.Do = "Wait for the node, and see why it is not ready: kubectl describe node " + name
	case !w.blocksAnything(p):
		c.Message = fmt.Sprintf("%s is Terminating on %s, which is not ready: no kubelet ends it. Nothing waits for it: it has no volume to be taken away, and its controller does not wait for its end", p.Name, name)
		c.Do = "Nothing for the pod's sake. See why the node is not ready: kubectl describe node " + name
	case !ofStatefulSet(p) && w.onlyPodHolds(p):
		c.Message = fmt.Sprintf("%s is Terminating on %s, which is not ready: no kubelet ends it. The kubelet had none of its volumes in use: they may leave the node as soon as the pod is deleted", p.Name, name)
		c.Do = fmt.Sprintf("The node needs no taint for that. See that its machine is off, or that it does no harm if the containers of %s run on there unseen, and delete the pod: kubectl delete pod -n %s %s --grace-period=0 --force", p.Name, p.Namespace, p.Name)
	default:
		meanwhile := "no kubelet ends it, and its volumes count as in use"
		if ofStatefulSet(p) {
			meanwhile = "a StatefulSet can't replace it"
		}
		c.Message = fmt.Sprintf("%s is Terminating on %s, which is not ready: %s until %s is back, or has the taint %s",
			p.Name, name, meanwhile, name, corev1.TaintNodeOutOfService)
		c.Do = w.safeAdvice(arbiter.NodeUnreachable, name)
	}
	return c
}

// notEndedCause quotes what a kubelet can't do to end a pod that is being deleted; nil where it has not complained
// since.
func (w *World) notEndedCause(p *corev1.Pod) *Cause {
	e := w.Evidence.complaint(p.UID)
	if e == nil || eventTime(e).Before(deletedAt(p)) {
		return nil
	}
	return &Cause{Of: OfMount, Code: e.Reason, Since: firstTime(e),
		Message: fmt.Sprintf("%s is Terminating on %s, whose kubelet can't end it: %s", p.Name, p.Spec.NodeName, shortened(e.Message, e.Reason)),
		Do:      fmt.Sprintf("Mend at %s what the message names. Don't delete the pod by force meanwhile: what of it is left there still counts", p.Spec.NodeName)}
}

// onlyPodHolds says whether nothing but a pod itself keeps its volumes at its node, such as one
// that no container mounts: once it is deleted they are detached, as its kubelet has reported
// none of them in use.
func (w *World) onlyPodHolds(p *corev1.Pod) bool {
	for _, need := range arbiter.PodRequest(w.Snapshot, w.PodFact(p)).Needs {
		v := w.Snapshot.Volume(need.Volume)
		if v == nil {
			continue
		}
		at := v.NodeVolume(ledger.NodeName(p.Spec.NodeName))
		if at == nil {
			continue
		}
		if verdict, rule := w.Arbiter.SafeToDetach(w.Snapshot, v, at, w.Now); !verdict.Allowed() || rule != "" {
			return false
		}
	}
	return true
}

// terminatingSince is since when a pod's deletion hangs at a node that is not ready.
func (w *World) terminatingSince(p *corev1.Pod) time.Time {
	since := deletedAt(p)
	if notReady := w.notReadySince(ledger.NodeName(p.Spec.NodeName)); notReady.After(since) {
		since = notReady
	}
	return since
}

// blocksAnything says whether others wait for the end of a pod that is being deleted: its
// StatefulSet, or whoever needs its volumes elsewhere.
func (w *World) blocksAnything(p *corev1.Pod) bool { return ofStatefulSet(p) || w.NeedsAttachment(p) }

func ofStatefulSet(p *corev1.Pod) bool {
	owner := metav1.GetControllerOf(p)
	return owner != nil && owner.Kind == "StatefulSet"
}

// adviceOnGone is what to do about a Node that is gone, and at whose machine volumes may be.
const adviceOnGone = "If its machine runs, restart its kubelet there: it makes the Node again. Otherwise see at its console, or in the cloud, that it is powered off, and then docs/operate/dead-nodes.md#a-node-that-was-deleted"

// adviceOnGoneNode says so of a Node that is gone, and what to do.
func adviceOnGoneNode(node string) string {
	return fmt.Sprintf("The Node %s is gone from the API. %s", node, adviceOnGone)
}

// NodeGone says of a Node that does not exist which volumes may be at its machine, and what to do;
// empty where there are none, or nodes may not be listed.
func (w *World) NodeGone(name string) string {
	if w.unseen("nodes") {
		return ""
	}
	var names []string
	for _, v := range w.LeftBehind(name) {
		names = append(names, cmp.Or(v.Claim, v.Key()))
	}
	if len(names) == 0 {
		return ""
	}
	list := strings.Join(names[:min(len(names), 3)], ", ")
	if more := len(names) - 3; more > 0 {
		list += fmt.Sprintf(" and %d more (kubectl moorage volumes -A -o wide)", more)
	}
	return fmt.Sprintf("nodes %q not found: the Node is gone, and its machine may still have %s: %s. %s", name, Count(len(names), "volume"), list, adviceOnGone)
}

// safeAdvice is what to do about a reason. A command that ends pods is given only
// for the node of the reason, only where that node is seen to be not ready, and with
// the check that its machine is off.
func (w *World) safeAdvice(code ledger.Code, node string) string {
	if code != arbiter.NodeUnreachable {
		return ofNode(w.adviceOn(code).Do, node)
	}
	object := w.Node(node)
	switch {
	case node == "":
		return "Find the node that is not ready: kubectl get nodes"
	case object == nil && w.unseen("nodes"):
		return askFor("nodes")
	case object == nil:
		return adviceOnGoneNode(node)
	case w.isReady(ledger.NodeName(node)):
		if outOfService(object) {
			return fmt.Sprintf("%s is ready again: wait for its kubelet's next report, then remove the taint: %s", node, untaint(node))
		}
		return fmt.Sprintf("%s is ready again: wait for its kubelet's next report, and don't taint it", node)
	}
	return w.adviceOnDead(object)
}

// ofNode is an advice with the node's name in its command, where that is known.
func ofNode(do, node string) string {
	const explain = "explain node "
	return strings.ReplaceAll(do, explain+"NODE", explain+cmp.Or(node, "NODE"))
}

// adviceOnDead is what to do about a node that is not ready, where something waits for it.
func (w *World) adviceOnDead(n *corev1.Node) string {
	lives := w.kubeletLives(n)
	switch {
	case outOfService(n) && lives && w.moorageDetaches():
		return fmt.Sprintf("%s has the taint %s, and its kubelet lives%s: power the machine off, or, if it is to stay, remove the taint: %s",
			n.Name, corev1.TaintNodeOutOfService, w.byLease(ledger.NodeName(n.Name)), untaint(n.Name))
	case lives:
		return fmt.Sprintf("%s is not ready, and its kubelet lives%s: it still ends pods and unmounts. Don't taint the node. See why it is not ready: kubectl describe node %s",
			n.Name, w.byLease(ledger.NodeName(n.Name)), n.Name)
	}
	if c := w.detacherDown(); c != nil {
		return "First have " + w.detacherProcess() + " run, without which nothing is detached, whatever the node has. " + c.Do
	}
	if outOfService(n) {
		what := fmt.Sprintf("%s has the taint %s: %s detaches as soon as its evidence is complete", n.Name, corev1.TaintNodeOutOfService, w.detacher())
		if !w.anyAttached(ledger.NodeName(n.Name)) {
			what = fmt.Sprintf("%s has the taint %s, and its volumes have been taken away", n.Name, corev1.TaintNodeOutOfService)
		}
		return what + ". When its machine is back and in order: " + untaint(n.Name)
	}
	void := ""
	if c := w.voidFence(n); c != "" {
		void = fmt.Sprintf("The condition %s of %s is not newer than the last sign of its kubelet, and counts for nothing: whoever fences the machine sets it anew, with a later lastTransitionTime. Otherwise: ", c, n.Name)
	}
	taint := corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}
	return fmt.Sprintf("%sFirst see at the console of its machine, or in the cloud, that %s is powered off: a volume that two nodes write is destroyed. "+
		"Only then: kubectl taint node %s %s%s", void, n.Name, n.Name, taint.ToString(), w.ends(&taint, n.Name))
}

// voidFence is a condition by which somebody says that a node's machine is fenced, that an
// AttachPolicy names, and that counts for nothing since the kubelet was heard of after it was
// set; empty where there is none.
func (w *World) voidFence(n *corev1.Node) string {
	var renewed time.Time
	if l := w.nodeLeases[n.Name]; l != nil {
		renewed = renewedAt(l)
	}
	later := translate.Node(n).Fenced // than the kubelet's last status
	for _, c := range n.Status.Conditions {
		kind := string(c.Type)
		named := slices.ContainsFunc(w.Policies, func(p *v1alpha1.AttachPolicy) bool {
			return p.Spec.ForceDetach != nil && p.Spec.ForceDetach.FencedCondition != nil && *p.Spec.ForceDetach.FencedCondition == kind
		})
		counts := slices.ContainsFunc(later, func(f ledger.FencedCondition) bool { return f.Type == kind && time.Unix(f.Since, 0).After(renewed) })
		if named && c.Status == corev1.ConditionTrue && !counts {
			return kind
		}
	}
	return ""
}

// anyAttached says whether a volume has an attachment at a node.
func (w *World) anyAttached(name ledger.NodeName) bool {
	n := w.Snapshot.Node(name)
	return n != nil && slices.ContainsFunc(n.At(), func(id ledger.VolumeID) bool {
		return len(w.Snapshot.Volume(id).NodeVolume(name).Attachments()) > 0
	})
}

// detacher is who detaches volumes here.
func (w *World) detacher() string {
	if w.moorageDetaches() {
		return "Moorage"
	}
	return kubeControllerManager
}

// detacherProcess is the process in which it does.
func (w *World) detacherProcess() string {
	if w.moorageDetaches() {
		return v1alpha1.ControllerName
	}
	return kubeControllerManager
}

// untaint is the command that has a node take pods again after it was out of service.
func untaint(node string) string {
	return fmt.Sprintf("kubectl taint node %s %s-", node, corev1.TaintNodeOutOfService)
}

func outOfService(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
}

// ends tells which pods of a node the taint out-of-service ends: those that do not tolerate it.
func (w *World) ends(taint *corev1.Taint, node string) string {
	n, tolerate := 0, 0
	for _, p := range w.Pods {
		switch {
		case p.Spec.NodeName != node || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed:
		case schedulingcorev1.TolerationsTolerateTaint(klog.Logger{}, p.Spec.Tolerations, taint, false):
			tolerate++
		default:
			n++
		}
	}
	switch {
	case w.partUnseen("pods"):
		return ". It ends every pod there that does not tolerate it; how many can't be seen"
	case n > 0 && tolerate > 0:
		return fmt.Sprintf(". It ends %s there (%d tolerate it)", Count(n, "pod"), tolerate)
	case n > 0:
		return fmt.Sprintf(". It ends every pod there (%s now)", Count(n, "pod"))
	case tolerate > 0:
		return fmt.Sprintf(". It ends no pod there (%d tolerate it)", tolerate)
	}
	return ""
}
