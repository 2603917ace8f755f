// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"context"
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"

	"github.com/moorage-dev/moorage/test/apitest"
)

// A process stopped during its election leaves no Lease behind, and does no work after hold returns.
func TestToldToStopWhileElected(t *testing.T) {
	for name, answer := range map[string]error{"answered": nil, "not answered": errors.New("the connection breaks")} {
		t.Run(name, func(t *testing.T) {
			server := apitest.Start(t)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			server.Intercept(func(r apitest.Request, serve func()) error {
				serve()
				if r.Verb != "create" {
					return nil
				}
				stop()
				return answer
			})
			election := Election{Enabled: true, Namespace: "kube-system", LeaseDuration: 2 * time.Second, RenewDeadline: time.Second, RetryPeriod: 20 * time.Millisecond}
			returned := make(chan struct{})
			err := hold(ctx, election, server.Kube, testDriver, leaderelection.NewLeaderHealthzAdaptor(time.Second), func(context.Context, func() bool) error {
				select {
				case <-returned:
					t.Error("it works though it was told to stop, and has")
				case <-ctx.Done():
				}
				return nil
			})
			close(returned)
			var l coordinationv1.Lease
			if there := server.Get("leases", "kube-system", "external-attacher-leader-disk-example-com", &l); err != nil || !there || *l.Spec.HolderIdentity != "" {
				t.Errorf("the Lease is left with %v (%v)", l.Spec.HolderIdentity, err)
			}
		})
	}
}
