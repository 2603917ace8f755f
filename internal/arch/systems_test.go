// SPDX-License-Identifier: Apache-2.0

package arch_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSystemsFailWithEachOfThem(t *testing.T) {
	makefile, err := filepath.Abs("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	all := []string{"scenarios", "test-install", "searches"}
	for _, fails := range append([]string{""}, all...) {
		for _, how := range []string{"ends with an error", "has no log"} {
			t.Run(strings.TrimSpace(fails+" "+how), func(t *testing.T) {
				dir, rules := t.TempDir(), "include "+makefile+"\nbuild: ; @:\n"
				for _, target := range all {
					rules += fmt.Sprintf("%s: ; @! test -e %s || { echo FAIL %[1]s; false; }\n", target, target+".fails")
				}
				put := func(name, text string) {
					if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				mkdir := func(name string) {
					if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
						t.Fatal(err)
					}
				}
				mkdir("bin")
				put("Makefile", rules)
				put("bin/searches.failed", "") // of an earlier run
				switch {
				case fails == "":
				case how == "has no log":
					mkdir("bin/" + fails + ".log")
				default:
					put(fails+".fails", "")
				}
				systems := exec.CommandContext(t.Context(), "make", "systems", "BESIDE=searches", "GO=true", "SANDBOX=a", "ATTACHER=b", "SIDECARS=c", "CSIADDONS=", "SNAPSHOTS=")
				systems.Dir = dir
				systems.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS=") })
				out, err := systems.CombinedOutput()
				bad := fails != "" && (fails != "scenarios" || how != "has no log")
				if failed := err != nil; failed != bad {
					t.Errorf("it ended with %v:\n%s", err, out)
				}
				if fails != "" && how == "ends with an error" && strings.Count(string(out), "FAIL "+fails) != 2 {
					t.Errorf("it does not say at the end that %s has failed:\n%s", fails, out)
				}
			})
		}
	}
}
