// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// root is the user of moorage-attacher and external-attacher: most drivers' pods make their socket as root,
// for root only.
const root = "0:0"

// nonroot is a number: Kubernetes sees that it is not root without the image.
const nonroot = "65532:65532"

const nonrootID = 65532

const sbomType types.MediaType = "application/spdx+json"

func epoch() time.Time { return time.Unix(0, 0).UTC() }

type program struct {
	repository string // root of the module
	command    string // package of the program
	version    string
	// linked are further linker variables, as package.Name=value.
	linked []string
}

type build struct {
	program
	name      string // of the binary, and of the image
	platforms []v1.Platform
}

// write makes the images, an index and SBOMs in a new folder, and returns the index's digest.
func (b build) write(ctx context.Context, folder string) (v1.Hash, error) {
	if err := os.RemoveAll(folder); err != nil {
		return v1.Hash{}, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var artifacts []v1.Image
	for _, platform := range b.platforms {
		image, sbom, err := b.image(ctx, platform)
		if err != nil {
			return v1.Hash{}, fmt.Errorf("%s: %w", platform, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &platform}})
		artifact, err := refer(image, sbom)
		if err != nil {
			return v1.Hash{}, fmt.Errorf("%s: SBOM: %w", platform, err)
		}
		artifacts = append(artifacts, artifact)
	}
	to, err := layout.Write(folder, empty.Index)
	if err != nil {
		return v1.Hash{}, err
	}
	if err := to.AppendIndex(index); err != nil {
		return v1.Hash{}, err
	}
	for _, artifact := range artifacts {
		if err := to.AppendImage(artifact); err != nil {
			return v1.Hash{}, err
		}
	}
	return index.Digest()
}

func (b build) image(ctx context.Context, platform v1.Platform) (v1.Image, []byte, error) {
	folder, err := os.MkdirTemp("", "moorage-image-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(folder)
	binary := filepath.Join(folder, b.name)
	if err := b.compile(ctx, platform.OS, platform.Architecture, binary); err != nil {
		return nil, nil, err
	}
	sbom, err := describe(binary, b.name, b.version)
	if err != nil {
		return nil, nil, fmt.Errorf("SBOM: %w", err)
	}
	layer, err := b.layer(binary)
	if err != nil {
		return nil, nil, err
	}
	image, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), layer)
	if err != nil {
		return nil, nil, err
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Variant = platform.OS, platform.Architecture, platform.Variant
	file.Created = v1.Time{Time: epoch()}
	file.Config = v1.Config{
		User: b.user(), Entrypoint: []string{"/" + b.name}, WorkingDir: "/",
		Labels: map[string]string{
			"org.opencontainers.image.title":    b.name,
			"org.opencontainers.image.version":  b.version,
			"org.opencontainers.image.source":   "https://github.com/moorage-dev/moorage",
			"org.opencontainers.image.licenses": "Apache-2.0",
		},
	}
	image, err = mutate.ConfigFile(image, file)
	return image, sbom, err
}

func (b build) user() string {
	if b.name == "moorage-attacher" || b.name == "moorage-node" {
		return root
	}
	return nonroot
}

// compile makes a static binary without traces of its place.
func (p program) compile(ctx context.Context, system, machine, binary string) error {
	fmt.Printf("building %s for %s/%s\n", path.Base(p.command), system, machine)
	flags := "-s -w -buildid= -X github.com/moorage-dev/moorage/internal/report.Version=" + p.version
	for _, variable := range p.linked {
		flags += " -X " + variable
	}
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", binary, p.command)
	command.Dir = p.repository
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+machine)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s/%s: go build %s: %w\n%s", system, machine, p.command, err, out)
	}
	return nil
}

// The layer has only the binary, at the root, writable for none.
func (b build) layer(binary string) (v1.Layer, error) {
	raw, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	header := &tar.Header{Typeflag: tar.TypeReg, Name: b.name, Mode: 0o555, Size: int64(len(raw)), ModTime: epoch(), Format: tar.FormatPAX}
	if err := w.WriteHeader(header); err != nil {
		return nil, err
	}
	_, writeErr := w.Write(raw)
	if err := errors.Join(writeErr, w.Close()); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
}

// refer makes an artifact of an image's SBOM.
func refer(image v1.Image, sbom []byte) (v1.Image, error) {
	digest, err := image.Digest()
	if err != nil {
		return nil, err
	}
	size, err := image.Size()
	if err != nil {
		return nil, err
	}
	artifact, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), static.NewLayer(sbom, sbomType))
	if err != nil {
		return nil, err
	}
	artifact = mutate.ConfigMediaType(artifact, sbomType)
	with, ok := mutate.Subject(artifact, v1.Descriptor{MediaType: types.OCIManifestSchema1, Digest: digest, Size: size}).(v1.Image)
	if !ok {
		return nil, errors.New("an image that refers to another is none")
	}
	return with, nil
}
