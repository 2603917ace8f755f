// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/protocol"
)

// WritePolicyStatus replaces a policy's status at exactly its version. After a lost write the informer has
// it made again: nothing is decided on it here.
func (e *Executor) WritePolicyStatus(ctx context.Context, policy *v1alpha1.AttachPolicy) error {
	written, err := call(ctx, e, time.Time{}, func(ctx context.Context) (*v1alpha1.AttachPolicy, error) {
		return e.config.Moorage.AttachPolicies().UpdateStatus(ctx, policy, metav1.UpdateOptions{})
	})
	switch {
	case err == nil:
		e.config.Observer.Saw(written)
		return nil
	case apierrors.IsConflict(err) && !convert.Denied(err):
		return fmt.Errorf("%w: AttachPolicy %s has another version", protocol.ErrStale, policy.Name)
	}
	return fmt.Errorf("write the status of AttachPolicy %s: %w", policy.Name, err)
}
