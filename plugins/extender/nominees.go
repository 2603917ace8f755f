// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// nominees are pods without a node that a scheduler has promised a node: it evicted others for them, or
// they have claims in provisioning. kube-scheduler counts both and tells an extender of neither: another
// pod could take their slot. Safe for parallel use.
type nominees struct {
	pods  cache.SharedIndexInformer
	retry func(types.UID) // has a refused pod tried again

	mu      sync.Mutex
	refused map[string]map[types.UID]bool // because of a nominee, by node
}

const byNomination = "nomination"

func newNominees(pods cache.SharedIndexInformer, retry func(types.UID)) (*nominees, error) {
	n := &nominees{pods: pods, retry: retry, refused: map[string]map[types.UID]bool{}}
	err := pods.AddIndexers(cache.Indexers{byNomination: func(object any) ([]string, error) {
		if node := nomination(object); node != "" {
			return []string{node}, nil
		}
		return nil, nil
	}})
	if err != nil {
		return nil, err
	}
	_, err = pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(old, next any) {
			if was := nomination(old); was != nomination(next) {
				n.left(was)
			}
		},
		DeleteFunc: func(object any) { n.left(nomination(object)) },
	})
	return n, err
}

// nomination is the promised node of a pod without a node, or empty.
func nomination(object any) string {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	pod, ok := object.(*corev1.Pod)
	if !ok || pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
		return ""
	}
	return pod.Status.NominatedNodeName
}

func (n *nominees) left(node string) {
	n.mu.Lock()
	list := n.refused[node]
	delete(n.refused, node)
	n.mu.Unlock()
	for uid := range list {
		n.retry(uid)
	}
}

func (n *nominees) keepsAway(pod types.UID, node string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.refused[node] == nil {
		n.refused[node] = map[types.UID]bool{}
	}
	n.refused[node][pod] = true
}

// at returns a dry run with the nominees before a pod: of its priority or higher, as in kube-scheduler, or
// with a volume in provisioning; nil without any.
func (n *nominees) at(node string, pod *corev1.Pod, s ledger.Snapshot) *ledger.Delta {
	list, err := n.pods.GetIndexer().ByIndex(byNomination, node)
	if err != nil || len(list) == 0 {
		return nil
	}
	var delta *ledger.Delta
	for _, object := range list {
		nominee, ok := object.(*corev1.Pod)
		if !ok || nominee.UID == pod.UID {
			continue
		}
		fact, err := convert.Pod(nominee)
		if err != nil || len(fact.Volumes) == 0 || priority(nominee) < priority(pod) && !provisioning(s, &fact, node) {
			continue
		}
		if delta == nil {
			delta = &ledger.Delta{}
		}
		delta.Add(string(nominee.UID), ledger.NodeName(node))
	}
	return delta
}

// provisioning says whether a volume is being made for a node: a scheduler has written the node on the
// claim, and never takes it back.
func provisioning(s ledger.Snapshot, pod *ledger.Pod, node string) bool {
	return slices.ContainsFunc(pod.Volumes, func(v ledger.PodVolume) bool {
		claim := s.Claim(ledger.ClaimKey{Namespace: pod.Namespace, Name: v.Claim})
		return claim != nil && string(claim.SelectedNode) == node
	})
}

// 0 without a priority, as in kube-scheduler.
func priority(pod *corev1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}
