// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/moorage-dev/moorage/internal/execute/apitest"
)

// kubeconfig is a file that leads to a server.
func kubeconfig(t *testing.T, url string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: '" + url +
		"'}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// The policy on volumesAttached is in place before the first write, or there is
// none: not even the Lease is taken while another controller could write, too.
func TestNothingIsWrittenUnguarded(t *testing.T) {
	c := newCluster(t, 4, "n1")
	c.disk("data")
	c.pod("db", "n1", "data", false) // there is work to do
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.Intercept(func(r apitest.Request, serve func()) error {
		if slices.Contains([]string{"create", "update", "patch", "delete"}, r.Verb) {
			cancel() // of whatever it is that it begins
		}
		serve()
		return nil
	})
	config := DefaultConfig()
	config.Kubeconfig = kubeconfig(t, c.URL)
	if err := Run(ctx, config); !errors.Is(err, errUnguarded) {
		t.Errorf("without the policy: %v", err)
	}
	putPolicy(c.Server)
	if err := Run(ctx, config); !errors.Is(err, errUnguarded) {
		t.Errorf("with a policy that is not bound: %v", err)
	}
	if writes := c.Writes(); len(writes) > 0 {
		t.Errorf("it wrote %v", writes)
	}
}
