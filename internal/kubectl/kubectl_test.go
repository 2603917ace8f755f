// SPDX-License-Identifier: Apache-2.0

package kubectl_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/docs"
	"github.com/moorage-dev/moorage/internal/kubectl"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
	"github.com/moorage-dev/moorage/test/apitest"
)

var rewrite = flag.Bool("rewrite", false, "write what the commands print into testdata/*/session.txt")

// Each folder of testdata is a cluster (objects.yaml on base.yaml) and a session for reviewers; -rewrite
// makes them anew.
func TestSessions(t *testing.T) {
	sessions, err := filepath.Glob("testdata/*/session.txt")
	if err != nil || len(sessions) < 3 {
		t.Fatalf("found %d sessions: %v", len(sessions), err)
	}
	for _, path := range sessions {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			server, now := load(t, filepath.Dir(path))
			got := play(t, server, now, string(raw))
			if *rewrite {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(raw) {
				t.Errorf("the session differs; -rewrite makes it anew. It is now:\n%s", got)
			}
		})
	}
}

func load(t *testing.T, folder string) (*apitest.Server, time.Time) {
	t.Helper()
	server := apitest.Start(t)
	var now time.Time
	namespaces, said := map[string]bool{}, map[string]bool{} // to be made, and made already
	for _, path := range []string{"testdata/base.yaml", filepath.Join(folder, "objects.yaml")} {
		list, says := objectsOf(t, path)
		if !says.IsZero() {
			now = says
		}
		for _, object := range list {
			if ns := object.GetNamespace(); ns != "" && !said[ns] {
				namespaces[ns] = true
			}
			if object.GetKind() == "Namespace" {
				said[object.GetName()], namespaces[object.GetName()] = true, false // it is in the file
			}
			resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
			if object.GetKind() == v1alpha1.KindNodeMountReport {
				resource.Resource = v1alpha1.ResourceNodeMountReports // a plural already
			}
			server.Put(resource.Resource, object)
		}
	}
	for name, make := range namespaces {
		if make {
			server.Put("namespaces", &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}})
		}
	}
	if now.IsZero() {
		t.Fatalf("%s: no line says the time: # now: 2006-01-02T15:04:05Z", folder)
	}
	if strings.HasPrefix(filepath.Base(folder), "stock") {
		server.Intercept(withoutMoorage)
	}
	if raw, err := os.ReadFile(filepath.Join(folder, "forbid")); err == nil {
		server.Intercept(forbidden(strings.Split(strings.TrimSpace(string(raw)), "\n")))
	}
	return server, now
}

// zero: the file has no time
func objectsOf(t *testing.T, path string) (list []*unstructured.Unstructured, now time.Time) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if text, ok := strings.CutPrefix(line, "# now: "); ok {
			if now, err = time.Parse(time.RFC3339, strings.TrimSpace(text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(repeated(t, string(raw))), 4096)
	for {
		var object unstructured.Unstructured
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return list, now
		} else if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if object.Object != nil {
			list = append(list, &object)
		}
	}
}

// forbidden refuses the lists in the folder's file "forbid".
func forbidden(resources []string) func(apitest.Request, func()) error {
	return func(r apitest.Request, serve func()) error {
		if r.Verb == "list" && slices.Contains(resources, strings.TrimSpace(r.Resource+" "+r.Name)) {
			return apierrors.NewForbidden(schema.GroupResource{Resource: r.Resource}, "", nil)
		}
		serve()
		return nil
	}
}

func withoutMoorage(r apitest.Request, serve func()) error {
	if slices.Contains([]string{"volumetickets", "volumeholds", "attachpolicies", "nodemountreports"}, r.Resource) {
		return apierrors.NewNotFound(schema.GroupResource{Resource: r.Resource}, "")
	}
	serve()
	return nil
}

// repeated copies each document with "# n: 1-9" nine times, with these numbers for {n}.
func repeated(t *testing.T, documents string) string {
	t.Helper()
	var all []string
	for document := range strings.SplitSeq(documents, "\n---\n") {
		_, times, ok := strings.Cut(document, "# n: ")
		if !ok {
			all = append(all, document)
			continue
		}
		var first, last int
		if _, err := fmt.Sscanf(times, "%d-%d\n", &first, &last); err != nil {
			t.Fatalf("%s: %v", document, err)
		}
		for n := first; n <= last; n++ {
			all = append(all, strings.ReplaceAll(document, "{n}", strconv.Itoa(n)))
		}
	}
	return strings.Join(all, "\n---\n")
}

func play(t *testing.T, server *apitest.Server, now time.Time, session string) string {
	t.Helper()
	var out strings.Builder
	var style *screen.Style
	for line := range strings.Lines(session) {
		if strings.HasPrefix(line, "#") {
			out.WriteString(line)
		}
		if strings.HasPrefix(line, "# terminal") {
			style = &screen.Style{Terminal: true}
		}
		text, ok := strings.CutPrefix(line, "$ kubectl moorage ")
		if !ok {
			continue
		}
		stdout, stderr, code := runIn(t.Context(), server, kubectl.Setting{Now: func() time.Time { return now }, Style: style}, strings.Fields(text)...)
		fmt.Fprintf(&out, "\n%s\n%s", strings.TrimSpace(line), ended(stdout)+ended(stderr))
		if code != 0 {
			fmt.Fprintf(&out, "exit %d\n", code)
		}
	}
	return out.String()
}

func ended(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

func run(ctx context.Context, server *apitest.Server, now time.Time, args ...string) (stdout, stderr string, code int) {
	return runIn(ctx, server, kubectl.Setting{Now: func() time.Time { return now }}, args...)
}

func runIn(ctx context.Context, server *apitest.Server, setting kubectl.Setting, args ...string) (stdout, stderr string, code int) {
	var out, errors bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errors}
	setting.Server = server.URL
	code = kubectl.RunIn(ctx, streams, args, setting)
	return out.String(), errors.String(), code
}

// The captures in docs/kubectl.md and the README are parts of sessions.
func TestDocumentedScreens(t *testing.T) {
	sessions, err := filepath.Glob("testdata/*/session.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, path := range sessions {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(raw)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for page, want := range map[string]struct {
		text  string
		least int
	}{"docs/kubectl.md": {docs.Kubectl, 3}, "README.md": {string(readme), 1}} {
		captures := 0
		for i, part := range strings.Split(want.text, "```") {
			_, capture, _ := strings.Cut(part, "\n") // after the language
			if i%2 == 0 || !strings.HasPrefix(capture, "$ ") {
				continue
			}
			captures++
			if !strings.Contains(all.String(), "\n"+capture) {
				t.Errorf("no session has this capture of %s:\n%s", page, capture)
			}
		}
		if captures < want.least {
			t.Errorf("%s has %d captures, want %d at least", page, captures, want.least)
		}
	}
}
