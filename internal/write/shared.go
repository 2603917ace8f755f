// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
)

// shared is a request about a node, for all that came before it was made.
type shared struct {
	request protocol.Request
	answer  protocol.Answer
	done    chan error
}

func (s *shared) result() chan error { return s.done }

func (s *shared) deliver(a protocol.Answer, err error) {
	s.answer = a
	s.done <- err
}

func (e *Executor) share(ctx context.Context, with *batcher[*shared], r protocol.Request, send func(context.Context, ledger.NodeName, []*shared)) (protocol.Answer, error) {
	item := &shared{request: r, done: make(chan error, 1)}
	node := r.Node
	if node == "" {
		node = ledger.NodeName(r.Key)
	}
	err := with.add(ctx, node, item, send)
	if item.answer.Result == 0 { // withdrawn
		return protocol.Answer{Result: protocol.NotSent}, fmt.Errorf("%w: %w", errNotSent, err)
	}
	return item.answer, err
}

// until is the sharers' latest deadline; none if a sharer has none.
func until(batch []*shared) time.Time {
	var latest time.Time
	for _, item := range batch {
		if item.request.Until.IsZero() {
			return time.Time{}
		}
		if item.request.Until.After(latest) {
			latest = item.request.Until
		}
	}
	return latest
}

func (e *Executor) getNode(ctx context.Context, name ledger.NodeName, batch []*shared) {
	r := batch[0].request
	r.Until = until(batch)
	answer, err := ask(ctx, e, r, nodeFact, func(ctx context.Context) (*corev1.Node, error) {
		return e.config.Kube.CoreV1().Nodes().Get(ctx, string(name), metav1.GetOptions{})
	})
	for _, item := range batch {
		item.deliver(answer, err)
	}
}

func nodeFact(n *corev1.Node) ledger.Event { return convert.Node(n) }

func (e *Executor) listPods(ctx context.Context, node ledger.NodeName, batch []*shared) {
	list, err := call(ctx, e, until(batch), func(ctx context.Context) (*corev1.PodList, error) {
		return e.config.Kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector("spec.nodeName", string(node)).String(),
		})
	})
	var facts []ledger.Event
	if err != nil {
		err = fmt.Errorf("list the pods of node %s: %w", node, err)
	} else {
		for i := range list.Items {
			e.config.Observer.Saw(&list.Items[i])
			pod, _ := convert.Pod(&list.Items[i]) // a broken source names no volume
			facts = append(facts, pod)
		}
	}
	for _, item := range batch {
		item.deliver(answerOf(item.request, err, facts...), err)
	}
}

// writeNode writes all fitting changes in one patch. The Node comes first, its proofs after it.
func (e *Executor) writeNode(ctx context.Context, name ledger.NodeName, batch []*shared) {
	node, known := e.config.Observer.Node(name)
	if !known {
		for _, item := range batch {
			item.deliver(protocol.Answer{Result: protocol.Unfit}, nil)
		}
		return
	}
	state, changes := convert.Node(node), make([]protocol.Change, len(batch))
	for i, item := range batch {
		changes[i] = e.lines.atNewest(state, item.request.Change)
	}
	patch, fits, stale := protocol.Compose(state, changes)
	for _, i := range stale {
		batch[i].deliver(protocol.Answer{Result: protocol.Unfit}, nil)
	}
	if len(fits) == 0 {
		return
	}
	answer, err := e.patchNode(ctx, node, patch)
	for _, fact := range answer.Facts {
		if is, ok := fact.(ledger.NodeState); ok {
			e.lines.patched(state, is, patch)
		}
	}
	for _, i := range fits {
		batch[i].deliver(answer, err)
	}
}

func (e *Executor) patchNode(ctx context.Context, node *corev1.Node, p protocol.NodePatch) (protocol.Answer, error) {
	r := protocol.Request{Kind: rules.PatchNode}
	patch, err := json.Marshal(operations(node, p))
	if err != nil {
		err = fmt.Errorf("%w: encode the patch of node %s: %w", errNotSent, node.Name, err)
		return answerOf(r, err), err
	}
	answer, err := ask(ctx, e, r, nodeFact, func(ctx context.Context) (*corev1.Node, error) {
		return e.config.Kube.CoreV1().Nodes().Patch(ctx, node.Name, types.JSONPatchType, patch, metav1.PatchOptions{}, "status")
	})
	if err != nil {
		err = fmt.Errorf("write volumesAttached of node %s: %w", node.Name, err)
	}
	return answer, err
}
