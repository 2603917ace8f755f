// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"sigs.k8s.io/yaml"
)

// Like ghcr.io, the registry lists no referrers.
func onThisMachine(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func tool(t *testing.T, folder, name string, args ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", append([]string{"tool", name}, args...)...)
	command.Dir = folder
	var errs bytes.Buffer
	command.Stderr = &errs
	out, err := command.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w\n%s", name, args[0], err, errs.String())
	}
	return string(out), err
}

func must(t *testing.T) func(out string, err error) string {
	t.Helper()
	return func(out string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
}

func key(t *testing.T) (string, string) {
	t.Helper()
	t.Setenv("COSIGN_PASSWORD", "secret")
	prefix := filepath.Join(t.TempDir(), "key")
	must(t)(tool(t, ".", "cosign", "generate-key-pair", "--output-key-prefix", prefix))
	return prefix + ".key", prefix + ".pub"
}

// A small program replaces Moorage's programs, which take long to build.
func published(t *testing.T, host, sign string) release {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(root, "charts/moorage/Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var chart struct{ Version string }
	if err := yaml.Unmarshal(raw, &chart); err != nil {
		t.Fatal(err)
	}
	platforms, err := parsePlatforms("linux/amd64,linux/arm64")
	if err != nil {
		t.Fatal(err)
	}
	r := release{
		repository: root, command: func(string) string { return "./hack/testdata/hello" }, version: "v" + chart.Version,
		registry: host + "/team", sign: sign, platforms: platforms, out: filepath.Join(t.TempDir(), "release"),
	}
	if err := r.publish(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

// The chart's reference alone leads to images, SBOMs and signatures of all platforms.
func TestAReleaseIsUsedFromItsRegistry(t *testing.T) {
	private, public := key(t)
	r := published(t, onThisMachine(t), private)
	chart := "oci://" + r.registry + "/charts/moorage"
	helm := func(args ...string) string {
		return must(t)(tool(t, r.repository, "helm", append(args, "--plain-http")...))
	}
	asked := helm("template", "moorage", chart) + helm("template", "moorage", chart, "--set", "mode=Standalone") + helm("show", "chart", chart)
	images := map[string]bool{}
	for _, match := range regexp.MustCompile(`\bimage: "?([^"\s]+)`).FindAllStringSubmatch(asked, -1) {
		images[match[1]] = true
	}
	if len(images) != len(components()) {
		t.Errorf("the chart asks for %v, and %v are built", images, components())
	}
	signed := []string{digestOf(t, r.registry+"/charts/moorage:"+strings.TrimPrefix(r.version, "v"))}
	for image := range images {
		signed = append(signed, pulled(t, image)...)
	}
	verify := append([]string{"verify", "--insecure-ignore-tlog", "--output", "text"}, signed...)
	must(t)(tool(t, ".", "cosign", append(verify, "--key", public)...))
	_, others := key(t)
	if _, err := tool(t, ".", "cosign", "verify", "--insecure-ignore-tlog", "--key", others, signed[0]); err == nil {
		t.Errorf("another key verifies %s, too", signed[0])
	}
	files := filepath.Join(r.out, "files")
	sums := filepath.Join(files, "SHA256SUMS")
	must(t)(tool(t, ".", "cosign", "verify-blob", "--insecure-ignore-tlog", "--key", public, "--bundle", sums+".sigstore.json", sums))
	released(t, r, files)
}

func digestOf(t *testing.T, text string) string {
	t.Helper()
	reference, err := name.ParseReference(text)
	if err != nil {
		t.Fatal(err)
	}
	found, err := remote.Head(reference)
	if err != nil {
		t.Fatal(err)
	}
	return reference.Context().Digest(found.Digest.String()).String()
}

// pulled returns the references that need a signature.
func pulled(t *testing.T, text string) []string {
	t.Helper()
	signed := []string{digestOf(t, text)}
	reference, err := name.ParseReference(text)
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(reference)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Errorf("%s: %v", text, err)
	}
	for _, machine := range []string{"amd64", "arm64"} {
		image, err := remote.Image(reference, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: machine}))
		if err != nil {
			t.Fatalf("%s for %s: %v", text, machine, err)
		}
		digest, err := image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		referrers, err := remote.Referrers(reference.Context().Digest(digest.String()))
		if err != nil {
			t.Fatal(err)
		}
		list, err := referrers.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(list.Manifests, func(d v1.Descriptor) bool { return d.ArtifactType == string(sbomType) })
		if i < 0 {
			t.Errorf("%s for %s has no bill of materials, but %+v", text, machine, list.Manifests)
			continue
		}
		bill := reference.Context().Digest(list.Manifests[i].Digest.String())
		described(t, bill, image)
		signed = append(signed, bill.String())
	}
	return signed
}

func described(t *testing.T, bill name.Digest, image v1.Image) {
	t.Helper()
	artifact, err := remote.Image(bill)
	if err != nil {
		t.Fatal(err)
	}
	sbom := billOf(t, artifact)
	root := t.TempDir()
	if err := unpack(image, root); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(root, sbom.Name))
	if err != nil {
		t.Fatal(err)
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256(raw)); sbom.Packages[0].Checksums[0].Value != sum {
		t.Errorf("%s is not of the binary in its image", bill)
	}
}

func released(t *testing.T, r release, files string) {
	t.Helper()
	sums, err := os.ReadFile(filepath.Join(files, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for line := range strings.Lines(string(sums)) {
		sum, file, _ := strings.Cut(strings.TrimSpace(line), "  ")
		said[file] = sum
	}
	entries, err := os.ReadDir(files)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		raw, err := os.ReadFile(filepath.Join(files, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(entry.Name(), "SHA256SUMS") && said[entry.Name()] != fmt.Sprintf("%x", sha256.Sum256(raw)) {
			t.Errorf("the checksum of %s is %q", entry.Name(), said[entry.Name()])
		}
	}
	raw, err := os.ReadFile(filepath.Join(files, "moorage.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var krew manifest
	if err := yaml.UnmarshalStrict(raw, &krew); err != nil {
		t.Fatal(err)
	}
	if krew.Spec.Version != r.version || len(krew.Spec.Platforms) == 0 {
		t.Errorf("krew's manifest is %+v", krew)
	}
	for _, p := range krew.Spec.Platforms {
		if said[path.Base(p.URI)] != p.SHA256 {
			t.Errorf("%s: krew wants %s, and the file has %q", p.URI, p.SHA256, said[path.Base(p.URI)])
		}
	}
	if notes, err := os.ReadFile(filepath.Join(r.out, "notes.md")); err != nil || len(bytes.TrimSpace(notes)) == 0 {
		t.Errorf("the notes are %q, %v", notes, err)
	}
}

func TestAReleaseIsTheSameTwice(t *testing.T) {
	host := onThisMachine(t)
	digests := map[string]string{}
	for range 2 {
		r := published(t, host, "")
		for _, image := range append(components(), "charts/moorage") {
			digest := digestOf(t, r.registry+"/"+image+":"+strings.TrimPrefix(r.version, "v"))
			if first := digests[image]; first != "" && first != digest {
				t.Errorf("%s is %s, and then %s", image, first, digest)
			}
			digests[image] = digest
		}
	}
}

func TestNothingIsPushedOfARelease(t *testing.T) {
	write := func(root, file, text string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const changes = "# Changelog\n\n## 1.2.4\nLater.\n\n## 1.2.3\n- A change.\n\n## 1.2.2\nThe first.\n"
	for _, test := range []struct{ name, version, chart, app, changes, registry, sign, says string }{
		{name: "no version", version: "main", says: "--version=main"},
		{name: "of another chart", chart: "1.2.2", says: "Chart.yaml has version 1.2.2"},
		{name: "of other images", app: "1.2.4", says: "appVersion 1.2.4"},
		{name: "with no notes", changes: "## 1.2.3\n\n## 1.2.2\nThe first.\n", says: "nothing of 1.2.3"},
		{name: "that nobody has noted", changes: "## 1.2.30\nA change.\n", says: "nothing of 1.2.3"},
		{name: "to nowhere", registry: "/", says: "--registry"},
		{name: "with no key", sign: "nowhere.key", says: "nowhere.key"},
	} {
		root := t.TempDir()
		write(root, "charts/moorage/Chart.yaml", "version: "+cmp.Or(test.chart, "1.2.3")+"\nappVersion: "+cmp.Or(test.app, "1.2.3")+"\n")
		write(root, "CHANGELOG.md", cmp.Or(test.changes, changes))
		r := release{repository: root, version: cmp.Or(test.version, "v1.2.3"), registry: cmp.Or(test.registry, "127.0.0.1:1/team"), sign: test.sign, command: ours, out: t.TempDir()}
		if _, err := r.begin(); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("a release %s: %v", test.name, err)
		}
		if err := r.publish(t.Context()); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("a release %s is published: %v", test.name, err)
		}
	}
	if notes := section(changes, "1.2.3"); notes != "- A change." {
		t.Errorf("the notes are %q", notes)
	}
}
