// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"encoding/json"
	"fmt"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// BindFence is a merge patch that gives a pod of exactly this UID and resource version a new
// value of the annotation moorage.dev/bind-fence, and so a new resource version: every bind
// that names an older one fails. No two values may be equal.
func BindFence(uid, version, value string) ([]byte, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": uid, "resourceVersion": version,
		"annotations": map[string]string{v1alpha1.AnnotationBindFence: value},
	}})
	if err != nil {
		return nil, fmt.Errorf("encode a fence: %w", err)
	}
	return patch, nil
}
