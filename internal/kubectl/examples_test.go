// SPDX-License-Identifier: Apache-2.0

package kubectl_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/moorage-dev/moorage/internal/kubectl"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
)

// Every command has an example; testdata/examples has the objects.
func TestExamplesRun(t *testing.T) {
	home, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	server, now := load(t, "testdata/examples")
	t.Chdir(t.TempDir())
	for _, file := range []string{"report.tar.gz", "moorage-bundle.tar.gz"} {
		if _, errs, code := run(t.Context(), server, now, "bundle", "--logs=false", "--out", file); code != 0 {
			t.Fatalf("bundle: exit code %d: %s", code, errs)
		}
	}
	root := kubectl.NewCommand(&command.Base{Flags: command.NewFlags(nil), Streams: genericiooptions.NewTestIOStreamsDiscard()})
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		lines := examplesOf(c)
		if len(lines) == 0 {
			t.Errorf("%s --help has no example", c.CommandPath())
		}
		for _, line := range lines {
			t.Run(line, func(t *testing.T) { runExample(t, home, line) })
		}
		for _, child := range c.Commands() {
			visit(child)
		}
	}
	visit(root)
}

func examplesOf(c *cobra.Command) []string {
	var list []string
	for part := range strings.SplitSeq(strings.ReplaceAll(c.Example, "\\\n", ""), "\n") {
		line, _, _ := strings.Cut(part, "#")
		line, _, _ = strings.Cut(line, "|")
		line = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(line), "&&"))
		if args, ok := strings.CutPrefix(line, "kubectl moorage "); ok {
			list = append(list, args)
		}
	}
	return list
}

func runExample(t *testing.T, home, line string) {
	files, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(home)
	server, now := load(t, "testdata/examples")
	t.Chdir(files)
	if strings.HasPrefix(line, "ticket make nightly") {
		server.Remove("volumetickets", "shop", "nightly")
	}
	args := strings.Fields(strings.ReplaceAll(line, "--port 8080", "--port 0"))
	if args[0] == "web" {
		args = append(args, "--open=false")
	}
	has := func(flags ...string) bool {
		return slices.ContainsFunc(flags, func(flag string) bool { return slices.Contains(args, flag) })
	}
	stays := strings.HasPrefix(line, "ticket make") ||
		args[0] == "drain" && !has("--dry-run") || args[0] == "web"
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	out, ended := start(ctx, discovering(t, server), kubectl.Setting{Now: func() time.Time { return now }}, args...)
	if stays {
		out.await(t, "\n")
		interrupt()
	}
	if code := <-ended; !stays && code != 0 && code != command.ExitFindings || strings.HasPrefix(out.String(), "error") || out.String() == "" {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}
