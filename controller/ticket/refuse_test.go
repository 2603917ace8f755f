// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/record"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/execute"
	"github.com/moorage-dev/moorage/internal/flow"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/report"
)

// unlucky is a writer whose first writes fail.
type unlucky struct {
	*writer
	failures int
}

func (u *unlucky) WriteTicketStatus(ctx context.Context, t *v1alpha1.VolumeTicket) error {
	if u.failures > 0 {
		u.failures--
		return flow.ErrStale
	}
	return u.writer.WriteTicketStatus(ctx, t)
}

func (u *unlucky) Carry(ctx context.Context, task flow.Task, status execute.Status) error {
	return carry(ctx, u, task, status)
}
