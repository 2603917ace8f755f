// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// permissions are what a person has to say yes to, as to kubectl drain, by flags of the same
// names.
type permissions struct {
	ignoreDaemonSets, ignoreTickets, deleteEmptyDirData, force bool
}

// task is what a person asked a drain for.
type task struct {
	node     string
	uid      types.UID // of the Node
	atOnce   int
	may      permissions
	wide     bool // every pod is named, however many there are
	selector labels.Selector
	began    time.Time // by the API server's clock
	// orphans are DaemonSets that pods name and that are gone.
	orphans map[types.UID]bool
}

// kept is why a pod stays at the node on purpose.
type kept string

const (
	keptDaemon   kept = "of a DaemonSet"
	keptStatic   kept = "run by the kubelet from a file"
	keptSelector kept = "without the labels of --pod-selector"
	// keptTheirs is for pods that end with another one: evicting them takes their volumes from it.
	keptTheirs kept = "of another pod, to end with that"
	// keptBack is for pods that were made after the cordon, and are there all the same.
	keptBack kept = "made there after the cordon, which does not keep them away"
)

// keptInOrder are all of them, as they are told.
func keptInOrder() []kept { return []kept{keptDaemon, keptStatic, keptSelector, keptTheirs, keptBack} }

// choice is what is to become of each pod of a node.
type choice struct {
	leave []*corev1.Pod
	keep  map[types.UID]kept
	lacks []lack
	wide  bool // as of the task
}

// lack is a permission that was not given, and the pods that need it.
type lack struct {
	what, flag string
	pods       []*corev1.Pod
}

// afterCordon is for how long after the cordon a scheduler may have placed a pod at the node
// without having seen it.
const afterCordon = 10 * time.Second

// choose decides what is to become of each pod of the node, as the cluster is.
func (t *task) choose(w *facts.World) choice {
	c := choice{keep: map[types.UID]kept{}, wide: t.wide}
	var daemons, data, alone, tied []*corev1.Pod
	cordoned := t.cordoned(w)
	for _, pod := range w.Pods {
		_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
		daemon, unmade := t.daemon(pod), !facts.MadeAgain(pod)
		switch {
		case pod.Spec.NodeName != t.node:
		case mirror:
			c.keep[pod.UID] = keptStatic
		case !t.selector.Matches(labels.Set(pod.Labels)):
			c.keep[pod.UID] = keptSelector
		case finished(pod) || pod.DeletionTimestamp != nil && !daemon:
			c.leave = append(c.leave, pod)
		case w.OwnerPod(pod) != nil:
			c.keep[pod.UID] = keptTheirs
		case daemon && t.may.ignoreDaemonSets:
			c.keep[pod.UID] = keptDaemon
		case daemon:
			daemons = append(daemons, pod)
		case !unmade && !cordoned.IsZero() && pod.CreationTimestamp.After(cordoned.Add(afterCordon)):
			c.keep[pod.UID] = keptBack
		default:
			lost, here := !t.may.deleteEmptyDirData && hasEmptyDir(pod), w.OnlyHere(pod, t.node)
			if lost {
				data = append(data, pod)
			}
			if !t.may.force && unmade {
				alone = append(alone, pod)
			} else if !t.may.force && here {
				tied = append(tied, pod)
			}
			if !lost && (t.may.force || !unmade && !here) {
				c.leave = append(c.leave, pod)
			}
		}
	}
	c.need(daemons, "DaemonSets have pods there, which would come back at once", "--ignore-daemonsets leaves them")
	c.need(data, "pods would lose what they have in emptyDir volumes", "--delete-emptydir-data evicts them")
	c.need(alone, "no controller would make these pods again", "--force evicts them")
	c.need(tied, "no other node will do for these pods with volumes, by their own node affinity or that of a volume, and they would wait for this one", "--force evicts them")
	return c
}

// daemon says whether a pod is one of a DaemonSet's that there is.
func (t *task) daemon(p *corev1.Pod) bool {
	return facts.DaemonSet(p) && !t.orphans[metav1.GetControllerOf(p).UID]
}

// counted is how many pods are to be evicted, and how many of them nobody makes again: those
// without a controller, and those that have finished.
func (t *task) counted(pods []*corev1.Pod) string {
	ending := 0
	for _, p := range pods {
		if !facts.MadeAgain(p) || finished(p) {
			ending++
		}
	}
	switch {
	case ending == 0:
		return facts.Count(len(pods), "pod")
	case ending == len(pods):
		return facts.Count(ending, "pod") + ", which nobody makes again"
	}
	return fmt.Sprintf("%s, %d of which nobody makes again", facts.Count(len(pods), "pod"), ending)
}

// needsNoRoom says whether a pod goes without a look at where its volumes could go: nobody makes
// it again, or no other node can ever use them.
func (t *task) needsNoRoom(w *facts.World, p *corev1.Pod) bool {
	return !facts.MadeAgain(p) || t.may.force && w.OnlyHere(p, t.node)
}

func (c *choice) need(pods []*corev1.Pod, what, flag string) {
	if len(pods) > 0 {
		c.lacks = append(c.lacks, lack{what, flag, pods})
	}
}

// cordoned is since when the node is cordoned; zero while it is not.
func (t *task) cordoned(w *facts.World) time.Time {
	n := w.Node(t.node)
	if n == nil || !n.Spec.Unschedulable {
		return time.Time{}
	}
	if since := facts.CordonedSince(n); !since.IsZero() {
		return since
	}
	return t.began
}

// refused is the error that names the permissions that were not given; nil when none is missing.
func (c *choice) refused(node, changed string) error {
	var missing []string
	for _, l := range c.lacks {
		missing = append(missing, fmt.Sprintf("%s: %s (%s)", sentenceOf(l.what), namedPods(names(l.pods), c.wide), l.flag))
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("node %s is not drained%s. %s", node, changed, strings.Join(missing, ". "))
}

// sentenceOf is a text that begins a sentence.
func sentenceOf(text string) string {
	return strings.ToUpper(text[:1]) + text[1:]
}

// stay says how many pods stay on purpose, and why; empty when none does.
func (c *choice) stay() string {
	count := map[kept]int{}
	for _, why := range c.keep {
		count[why]++
	}
	var list []string
	for _, why := range keptInOrder() {
		if n := count[why]; n > 0 {
			list = append(list, facts.Count(n, "pod")+" "+string(why))
		}
	}
	return strings.Join(list, ", ")
}

func finished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func hasEmptyDir(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.EmptyDir != nil })
}

func nameOf(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

func names(pods []*corev1.Pod) []string {
	var list []string
	for _, p := range pods {
		list = append(list, nameOf(p))
	}
	return list
}

// mostPods is how many pods are named of those of which the same is said.
const mostPods = 8

// namedPods names pods of which the same is said: all of them with wide, else the first ones.
func namedPods(names []string, wide bool) string {
	if wide || len(names) <= mostPods {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more (-o wide names them)", strings.Join(names[:mostPods], ", "), len(names)-mostPods)
}
