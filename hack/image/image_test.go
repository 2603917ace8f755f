// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// hello is an image of a small program, for this machine and another kind.
func hello() build {
	other := "arm64"
	if runtime.GOARCH == other {
		other = "amd64"
	}
	return build{
		repository: ".", command: "./testdata/hello", name: "hello", version: "1.2.3",
		platforms: []v1.Platform{{OS: "linux", Architecture: runtime.GOARCH}, {OS: "linux", Architecture: other}},
	}
}

// written writes an image and returns its folder, its index and its digest.
func written(t *testing.T, b build) (string, v1.ImageIndex, v1.Hash) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), b.name)
	digest, err := b.write(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	top, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	index, err := top.ImageIndex(digest)
	if err != nil {
		t.Fatal(err)
	}
	return folder, index, digest
}

func TestAnImageRunsFromItsRootAndIsTheSameTwice(t *testing.T) {
	_, index, first := written(t, hello())
	_, _, second := written(t, hello())
	if first != second {
		t.Errorf("the same source gives %s and %s", first, second)
	}
	if err := validate.Index(index); err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 2 || manifest.Manifests[0].Platform.Architecture == manifest.Manifests[1].Platform.Architecture {
		t.Fatalf("the index has %+v", manifest.Manifests)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if user, _, _ := strings.Cut(config.Config.User, ":"); user == "" || user == "0" || user == "root" {
		t.Errorf("it runs as %q", config.Config.User)
	}
	root := unpack(t, image)
	command := exec.Command(filepath.Join(root, config.Config.Entrypoint[0]), "world")
	command.Dir, command.Env = root, nil
	out, err := command.CombinedOutput()
	if err != nil || string(out) != "hello [world]\n" {
		t.Errorf("the entrypoint says %q, %v", out, err)
	}
	if static, err := exec.Command("ldd", filepath.Join(root, "hello")).CombinedOutput(); err == nil {
		t.Errorf("the binary wants libraries that an image from scratch does not have: %s", static)
	}
}

// unpack writes what an image has into a folder, and wants it to be one file.
func unpack(t *testing.T, image v1.Image) string {
	t.Helper()
	root := t.TempDir()
	content := mutate.Extract(image)
	defer content.Close()
	files := 0
	for archive := tar.NewReader(content); ; files++ {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		if header.Uid != 0 || header.FileInfo().Mode().Perm() != 0o555 || header.ModTime.Unix() != 0 {
			t.Errorf("%s has mode %s, owner %d, time %s", header.Name, header.FileInfo().Mode(), header.Uid, header.ModTime)
		}
		if err := os.WriteFile(filepath.Join(root, filepath.Clean("/"+header.Name)), raw, header.FileInfo().Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
	if files != 1 {
		t.Errorf("it has %d files, want the binary alone", files)
	}
	return root
}

func TestEachImageHasItsBillOfMaterials(t *testing.T) {
	folder, index, _ := written(t, hello())
	top, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	all, err := top.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	images, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	described := map[v1.Hash]bool{}
	for _, descriptor := range all.Manifests[1:] {
		artifact, err := top.Image(descriptor.Digest)
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := artifact.Manifest()
		if err != nil {
			t.Fatal(err)
		}
		layers, err := artifact.Layers()
		if err != nil {
			t.Fatal(err)
		}
		content, err := layers[0].Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		var sbom document
		if err := json.NewDecoder(content).Decode(&sbom); err != nil {
			t.Fatal(err)
		}
		if sbom.Version != "SPDX-2.3" || sbom.Packages[0].Version != "1.2.3" || sbom.Packages[1].Name != "stdlib" {
			t.Errorf("the bill is %+v", sbom)
		}
		if manifest.Subject != nil {
			described[manifest.Subject.Digest] = true
		}
	}
	for _, image := range images.Manifests {
		if !described[image.Digest] {
			t.Errorf("the image for %s has no bill of materials", image.Platform)
		}
	}
}
