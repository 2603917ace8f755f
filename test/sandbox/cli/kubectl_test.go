// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestKubectlMoorageIsPartOfTheSandbox(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("PATH", "")
	cluster := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(cluster, []byte(`{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c"}}],"clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errs}
	if err := runKubectl(t.Context(), cluster, []string{"moorage", "explain", "--help"}, streams); err != nil || !strings.Contains(out.String(), "kubectl moorage explain") {
		t.Errorf("its help: %v: %s", err, out.String())
	}
	out.Reset()
	if err := runKubectl(t.Context(), cluster, []string{"moorage"}, streams); err != nil || !strings.Contains(out.String(), "drain-plan") {
		t.Errorf("without a command: %v: %s%s", err, out.String(), errs.String())
	}
	if err := runKubectl(t.Context(), cluster, []string{"moorage", "expain"}, streams); err == nil || !strings.Contains(errs.String(), "explain") {
		t.Errorf("a typo: %v: %s", err, errs.String())
	}
	errs.Reset()
	err := runKubectl(t.Context(), cluster, []string{"moorage", "nodes"}, streams)
	var said *reported
	if !errors.As(err, &said) || said.code != 1 || !strings.Contains(errs.String(), "127.0.0.1:1") {
		t.Errorf("on a cluster that does not answer: %v: %s", err, errs.String())
	}
}
