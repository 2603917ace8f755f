// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/protocol"
)

// askNode asks moorage-node for a fresh look by a change of a NodeMountReport's spec, at exactly its UID
// and version.
func (e *Executor) askNode(ctx context.Context, r protocol.Request) (protocol.Answer, error) {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": r.UID, "resourceVersion": r.Version},
		"spec":     map[string]any{"look": r.Look},
	})
	if err != nil {
		err = fmt.Errorf("%w: encode the patch of NodeMountReport %s: %w", errNotSent, r.Key, err)
		return answerOf(r, err), err
	}
	answer, err := ask(ctx, e, r, wordFact, func(ctx context.Context) (*v1alpha1.NodeMountReport, error) {
		return e.config.Moorage.NodeMountReports().Patch(ctx, r.Key, types.MergePatchType, patch, metav1.PatchOptions{})
	})
	if err != nil {
		err = fmt.Errorf("ask node %s to look what is mounted there: %w", r.Key, err)
	}
	return answer, err
}
