// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/protocol"
)

// askNode asks a node's moorage-node for a fresh look.
func (e *Executor) askNode(ctx context.Context, r protocol.Request) (protocol.Answer, error) {
	return e.patchWord(ctx, r, fmt.Sprintf("ask node %s to look what is mounted there", r.Key), map[string]any{"look": r.Look})
}

// orderUnstage writes a node's orders to moorage-node to unstage volumes. An order also asks for a
// look.
func (e *Executor) orderUnstage(ctx context.Context, r protocol.Request) (protocol.Answer, error) {
	spec := map[string]any{"unstage": convert.UnstageOrders(r.Orders)}
	if r.Do == protocol.OrderUnstage {
		spec["look"] = r.Look
	}
	return e.patchWord(ctx, r, fmt.Sprintf("write what node %s is to unstage", r.Key), spec)
}

// patchWord changes the spec of a NodeVolumes, at exactly its UID and version.
func (e *Executor) patchWord(ctx context.Context, r protocol.Request, doing string, spec map[string]any) (protocol.Answer, error) {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": r.UID, "resourceVersion": r.Version},
		"spec":     spec,
	})
	if err != nil {
		err = fmt.Errorf("%w: encode the patch of NodeVolumes %s: %w", errNotSent, r.Key, err)
		return answerOf(r, err), err
	}
	answer, err := ask(ctx, e, r, wordFact, func(ctx context.Context) (*v1alpha1.NodeVolumes, error) {
		return e.config.Moorage.NodeVolumes().Patch(ctx, r.Key, types.MergePatchType, patch, metav1.PatchOptions{})
	})
	if err != nil {
		err = fmt.Errorf("%s: %w", doing, err)
	}
	return answer, err
}
