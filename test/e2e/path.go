// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/test/sandbox"
)

// path is the whole way of one pod with one volume.
func path() sandbox.Scenario {
	return sandbox.Scenario{
		Name:  "path",
		Doc:   "A pod with a volume goes from creation to Running to deletion.",
		Modes: []sandbox.Mode{sandbox.Upstream},
		Run: func(ctx context.Context, e *sandbox.Env) error {
			if err := e.CreateClaim(ctx, sandbox.Claim("data", corev1.ReadWriteOnce)); err != nil {
				return err
			}
			if err := e.CreatePod(ctx, sandbox.Pod("db", "data")); err != nil {
				return err
			}
			if err := e.Eventually(ctx, "the pod runs", func() error { return e.Running("db") }); err != nil {
				return err
			}
			if err := e.DeletePod(ctx, "db"); err != nil {
				return err
			}
			return e.Eventually(ctx, "the pod is gone", func() error { return e.PodGone("db") })
		},
	}
}
