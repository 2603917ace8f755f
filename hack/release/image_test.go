// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func hello() build {
	other := "arm64"
	if runtime.GOARCH == other {
		other = "amd64"
	}
	return build{
		program: program{repository: "../..", command: "./hack/testdata/hello", version: "1.2.3", linked: []string{"main.linked=1.2.3"}}, name: "hello",
		platforms: []v1.Platform{{OS: "linux", Architecture: runtime.GOARCH}, {OS: "linux", Architecture: other}},
	}
}

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
	folder, index, first := written(t, hello())
	_, _, second := written(t, hello())
	if first != second {
		t.Errorf("the same source gives %s and %s", first, second)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 2 || manifest.Manifests[0].Platform.Architecture == manifest.Manifests[1].Platform.Architecture {
		t.Fatalf("the index has %+v", manifest.Manifests)
	}
	if said, err := check(t.Context(), folder, first, "world"); err != nil || said != "hello [world], linked by 1.2.3\n" {
		t.Errorf("the entrypoint says %q, %v", said, err)
	}
}

func TestCheckRefuses(t *testing.T) {
	b := hello()
	folder, index, digest := written(t, b)
	if _, err := check(t.Context(), folder, digest, "fail"); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("an entrypoint that fails: %v", err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	image, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	asRoot := config.DeepCopy()
	asRoot.Config.User = ""
	if image, err = mutate.ConfigFile(image, asRoot); err != nil {
		t.Fatal(err)
	}
	if _, err := start(t.Context(), image); err == nil || !strings.Contains(err.Error(), `as ""`) {
		t.Errorf("an image that runs as root: %v", err)
	}
	b.platforms = b.platforms[1:]
	folder, _, digest = written(t, b)
	if _, err := check(t.Context(), folder, digest); err == nil || !strings.Contains(err.Error(), "no image for") {
		t.Errorf("no image for this machine: %v", err)
	}
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
		sbom := billOf(t, artifact)
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

func TestOneFileHasTheImagesOfAPlatform(t *testing.T) {
	b := hello()
	folder, _, digest := written(t, b)
	out := t.TempDir()
	for _, platform := range b.platforms {
		if err := archive(out, []built{{"moorage-hello", folder, digest}}, platform, "moorage.local", "1.2.3"); err != nil {
			t.Fatal(err)
		}
		tag, err := name.NewTag("moorage.local/moorage-hello:1.2.3")
		if err != nil {
			t.Fatal(err)
		}
		image, err := tarball.ImageFromPath(filepath.Join(out, "moorage-linux-"+platform.Architecture+".tar"), &tag)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Architecture != platform.Architecture {
			t.Errorf("the file for %s has an image for %s", platform.Architecture, config.Architecture)
		}
	}
	if err := archive(out, []built{{"moorage-hello", folder, digest}}, v1.Platform{OS: "linux", Architecture: "s390x"}, "moorage.local", "1"); err == nil {
		t.Error("there is a file for a platform that was not built")
	}
}

// Most drivers' sockets belong to root.
func TestOnlyTheAttacherIsRoot(t *testing.T) {
	for name, want := range map[string]string{"moorage": "65532:65532", "moorage-attacher": "0:0", "moorage-node": "0:0"} {
		if got := (build{name: name}).user(); got != want {
			t.Errorf("%s runs as %s, want %s", name, got, want)
		}
	}
}

func billOf(t *testing.T, artifact v1.Image) (sbom document) {
	t.Helper()
	layers, err := artifact.Layers()
	if err != nil {
		t.Fatal(err)
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.NewDecoder(content).Decode(&sbom); err != nil {
		t.Fatal(err)
	}
	return sbom
}
