// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// recorder is a handler of plugins that runs none.
type recorder struct {
	path string
	args []string
	env  []string
}

func (r *recorder) Lookup(name string) (string, bool) {
	path, err := exec.LookPath("kubectl-" + name)
	return path, err == nil
}

func (r *recorder) Execute(path string, args, env []string) error {
	r.path, r.args, r.env = path, args, env
	return nil
}

// kubectl moorage runs the plugin that lies beside the sandbox's own program, against the
// sandbox's cluster.
func TestKubectlFindsThePlugin(t *testing.T) {
	t.Setenv("PATH", os.Getenv("PATH"))
	t.Setenv("KUBECONFIG", "")
	folder := t.TempDir()
	path := filepath.Join(folder, "kubectl-moorage")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := surround(folder, "/cluster/kubeconfig"); err != nil {
		t.Fatal(err)
	}
	var r recorder
	newKubectl("/cluster/kubeconfig", []string{"moorage", "nodes", "-o", "wide"}, &r)
	if r.path != path || !slices.Equal(r.args, []string{"nodes", "-o", "wide"}) || !slices.Contains(r.env, "KUBECONFIG=/cluster/kubeconfig") {
		t.Errorf("it runs %q with %q", r.path, r.args)
	}
}
