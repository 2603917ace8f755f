// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestMissingSidecarSaysWhatToDo(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"csi-attacher", SnapshotController, Snapshotter, Provisioner} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Shape: DefaultShape(), Executable: filepath.Join(folder, "moorage-sandbox")}
	t.Setenv(AttacherEnv, "")
	if _, err := o.complete(); err != nil {
		t.Errorf("without operations no sidecar is missing: %v", err)
	}
	o.Operations.On = true
	if _, err := o.complete(); err == nil || !strings.Contains(err.Error(), Resizer) || !strings.Contains(err.Error(), "make build") {
		t.Errorf("csi-resizer is missing, and it says %v", err)
	}
}

// The sidecars replace the sandbox's provisioner. Each has an account of its own.
func TestOneProvisioner(t *testing.T) {
	for _, on := range []bool{false, true} {
		s := &site{options: Options{Shape: DefaultShape()}, folder: &folder{path: t.TempDir()}}
		s.options.Operations.On = on
		own := slices.ContainsFunc(diskComponent(s).args, func(arg string) bool { return strings.HasPrefix(arg, "--kubeconfig=") })
		users := map[string]bool{}
		for _, c := range operationComponents(s) {
			users[c.identity.User] = true
		}
		if own == on || on && len(users) != 4 || !on && len(users) != 0 {
			t.Errorf("operations %t: own provisioner %t, and the sidecars' accounts are %v", on, own, users)
		}
	}
}
