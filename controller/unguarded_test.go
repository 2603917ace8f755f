// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"testing"

	"github.com/moorage-dev/moorage/test/apitest"
)

// Without the policy, not even the Lease is taken.
func TestNothingIsWrittenUnguarded(t *testing.T) {
	c := newCluster(t, 4, "n1")
	c.disk("data")
	c.pod("db", "n1", "data", false) // there is work to do
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.Intercept(func(r apitest.Request, serve func()) error {
		if r.Writes() {
			cancel() // in any beginning
		}
		serve()
		return nil
	})
	config := DefaultConfig()
	config.Mode, config.PolicyPatience = ModeStandalone, 0
	config.Kubeconfig = apitest.Kubeconfig(t, c.URL)
	if err := Run(ctx, config); !errors.Is(err, errUnguarded) {
		t.Errorf("without the policy: %v", err)
	}
	if writes := c.Writes(); len(writes) > 0 {
		t.Errorf("it wrote %v", writes)
	}
}
