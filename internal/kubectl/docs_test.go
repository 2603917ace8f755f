// SPDX-License-Identifier: Apache-2.0

package kubectl_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/moorage-dev/moorage/docs"
	"github.com/moorage-dev/moorage/internal/kubectl"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/test/apitest"
)

// docs/kubectl.md has every command and every check of doctor.
func TestCommandsAreDocumented(t *testing.T) {
	root := kubectl.NewCommand(&command.Base{Flags: command.NewFlags(nil), Streams: genericiooptions.NewTestIOStreamsDiscard()})
	for _, c := range root.Commands() {
		if !strings.Contains(docs.Kubectl, "| `"+c.Name()) {
			t.Errorf("docs/kubectl.md does not list %s", c.Name())
		}
		if c.Example == "" {
			t.Errorf("%s has no examples", c.Name())
		}
		if c.Short == "" || c.Args == nil {
			t.Errorf("%s lacks a description, or takes any arguments", c.Name())
		}
		if c.Name() == "doctor" {
			checksDocumented(t, c)
		}
	}
}

func checksDocumented(t *testing.T, doctor *cobra.Command) {
	t.Helper()
	_, list, ok := strings.Cut(doctor.Long, "Checks: ")
	if !ok {
		t.Fatal("doctor does not list its checks")
	}
	for check := range strings.SplitSeq(strings.TrimSuffix(list, "."), ", ") {
		if !strings.Contains(docs.Kubectl, "| `"+check+"` |") {
			t.Errorf("docs/kubectl.md does not explain the check %s", check)
		}
	}
}

func TestKrewManifest(t *testing.T) {
	raw, err := os.ReadFile("../../hack/krew/moorage.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Kind     string
		Metadata struct{ Name string }
		Spec     struct {
			Version, ShortDescription string
			Platforms                 []struct {
				Selector         struct{ MatchLabels struct{ OS, Arch string } }
				URI, SHA256, Bin string
			}
		}
	}
	if err := yaml.Unmarshal(raw, &manifest); err != nil {
		t.Fatal(err)
	}
	if manifest.Kind != "Plugin" || manifest.Metadata.Name != "moorage" || len(manifest.Spec.Platforms) < 4 || len(manifest.Spec.ShortDescription) > 50 {
		t.Errorf("the manifest is %+v", manifest)
	}
	for _, p := range manifest.Spec.Platforms {
		os, arch := p.Selector.MatchLabels.OS, p.Selector.MatchLabels.Arch
		archive := fmt.Sprintf("/%s/kubectl-moorage-%s-%s.tar.gz", manifest.Spec.Version, os, arch)
		want := "kubectl-moorage"
		if os == "windows" {
			want += ".exe"
		}
		if !strings.HasSuffix(p.URI, archive) || len(p.SHA256) != 64 || p.Bin != want {
			t.Errorf("%s/%s: %+v", os, arch, p)
		}
	}
}

func TestFailures(t *testing.T) {
	server, now := load(t, "testdata/limit")
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{"explains"}, "unknown command \"explains\" for \"kubectl moorage\"\n\nDid you mean this?\n\texplain\n"},
		{[]string{"volumes", "--colour"}, "unknown flag: --colour"},
		{[]string{"volumes", "pv-a"}, `takes no name such as "pv-a"`},
		{[]string{"doctor", "--fail-on", "often"}, `--fail-on "often" is not known`},
		{[]string{"volumes", "--context", "nowhere"}, `context "nowhere" does not exist`},
	} {
		out, errs, code := run(t.Context(), server, now, test.args...)
		if code != 1 || out != "" || !strings.Contains(errs, "error: ") || !strings.Contains(errs, test.says) {
			t.Errorf("%v: exit code %d, output %q, errors %q", test.args, code, out, errs)
		}
	}
	nowhere := &apitest.Server{URL: "http://127.0.0.1:1"}
	if _, errs, code := run(t.Context(), nowhere, now, "volumes"); code != 1 || !strings.Contains(errs, "the API server can't be reached") || !strings.Contains(errs, "connection refused") {
		t.Errorf("a server that is not there: exit code %d, errors %q", code, errs)
	}
}

// kustomize brings the API's whole schema; text/template makes the linker keep every method.
func TestPluginIsSmall(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "../../cmd/kubectl-moorage").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.Lines(string(out)) {
		dep = strings.TrimSpace(dep)
		if strings.HasPrefix(dep, "sigs.k8s.io/kustomize/") || strings.HasPrefix(dep, "k8s.io/kubernetes/") || dep == "k8s.io/cli-runtime/pkg/genericclioptions" {
			t.Errorf("kubectl-moorage links %s", dep)
		}
	}
}
