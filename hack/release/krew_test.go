// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"sigs.k8s.io/yaml"
)

type manifest struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string `json:"version"`
		Homepage         string `json:"homepage"`
		ShortDescription string `json:"shortDescription"`
		Description      string `json:"description"`
		Caveats          string `json:"caveats"`
		Platforms        []struct {
			Selector struct {
				MatchLabels map[string]string `json:"matchLabels"`
			} `json:"selector"`
			URI    string `json:"uri"`
			SHA256 string `json:"sha256"`
			Bin    string `json:"bin"`
		} `json:"platforms"`
	} `json:"spec"`
}

func builtPlugin(t *testing.T) (string, manifest) {
	t.Helper()
	out := t.TempDir()
	r := plugin{program{repository: "../..", command: "./hack/testdata/hello", version: "v1.2.3"}, nil, out}
	if err := r.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(out, "moorage.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var m manifest
	if err := yaml.UnmarshalStrict(raw, &m); err != nil {
		t.Fatal(err)
	}
	return out, m
}

// Each platform with a kubectl release has an archive with its checksum. This machine's archive runs.
func TestArchivesAreWhatTheManifestSays(t *testing.T) {
	out, m := builtPlugin(t)
	if m.Kind != "Plugin" || m.Metadata.Name != "moorage" || m.Spec.Version != "v1.2.3" || strings.Contains(m.Spec.ShortDescription, "\n") {
		t.Errorf("the manifest is %+v", m)
	}
	var platforms []string
	for _, p := range m.Spec.Platforms {
		system, machine := p.Selector.MatchLabels["os"], p.Selector.MatchLabels["arch"]
		platforms = append(platforms, system+"/"+machine)
		raw, err := os.ReadFile(filepath.Join(out, path.Base(p.URI)))
		if err != nil {
			t.Fatal(err)
		}
		if sum := fmt.Sprintf("%x", sha256.Sum256(raw)); sum != p.SHA256 {
			t.Errorf("%s: the manifest says %s, the archive has %s", path.Base(p.URI), p.SHA256, sum)
		}
		if !regexp.MustCompile(`^https://\S+/v1\.2\.3/kubectl-moorage-` + system + `-` + machine + `\.tar\.gz$`).MatchString(p.URI) {
			t.Errorf("the archive of %s/%s is at %s", system, machine, p.URI)
		}
		files := untar(t, raw)
		if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, []string{"LICENSE", p.Bin}) {
			t.Errorf("%s has the files %v, and krew looks for %s", path.Base(p.URI), got, p.Bin)
		}
		if system != runtime.GOOS || machine != runtime.GOARCH {
			continue
		}
		binary := filepath.Join(t.TempDir(), p.Bin)
		if err := os.WriteFile(binary, files[p.Bin], 0o755); err != nil {
			t.Fatal(err)
		}
		if said, err := exec.Command(binary).CombinedOutput(); err != nil || string(said) != p.Bin+" [], linked by \n" {
			t.Errorf("the binary says %q, %v", said, err)
		}
	}
	want := []string{"darwin/amd64", "darwin/arm64", "linux/amd64", "linux/arm64", "windows/amd64", "windows/arm64"}
	if slices.Sort(platforms); !slices.Equal(platforms, want) {
		t.Errorf("there are archives for %v, want %v", platforms, want)
	}
}

func TestArchivesAreTheSameTwice(t *testing.T) {
	_, first := builtPlugin(t)
	_, second := builtPlugin(t)
	for i, p := range first.Spec.Platforms {
		if p.SHA256 != second.Spec.Platforms[i].SHA256 {
			t.Errorf("%s is different each time", path.Base(p.URI))
		}
	}
}

func TestAVersionIsSemantic(t *testing.T) {
	for _, version := range []string{"", "1.2.3", "v1.2", "main", "v1.2.3\n"} {
		r := plugin{program{repository: "../..", command: "./hack/testdata/hello", version: version}, nil, t.TempDir()}
		if err := r.write(t.Context()); err == nil || !strings.Contains(err.Error(), "--version") {
			t.Errorf("version %q: %v", version, err)
		}
	}
}

func untar(t *testing.T, raw []byte) map[string][]byte {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for archive := tar.NewReader(zip); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if out[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}

func TestArchivesOfSomePlatforms(t *testing.T) {
	linux, sun := v1.Platform{OS: "linux", Architecture: "amd64"}, v1.Platform{OS: "solaris", Architecture: "sparc"}
	out := t.TempDir()
	p := plugin{program{repository: "../..", command: "./hack/testdata/hello", version: "v1.2.3"}, []v1.Platform{linux, sun}, out}
	if err := p.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	archives, err := filepath.Glob(filepath.Join(out, "*.tar.gz"))
	if err != nil || len(archives) != 1 || !strings.Contains(archives[0], "linux-amd64") {
		t.Errorf("the archives are %v: %v", archives, err)
	}
	p.only = []v1.Platform{sun}
	if err := p.write(t.Context()); err == nil || !strings.Contains(err.Error(), "solaris") {
		t.Errorf("no archive is written, and no error says so: %v", err)
	}
}
