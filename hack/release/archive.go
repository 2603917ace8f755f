// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// built is a written image: its folder in the OCI layout, and its index's digest.
type built struct {
	name, folder string
	digest       v1.Hash
}

// archive writes a file like docker save's, for kind, k3d and minikube, with names prefix/name:tag.
func archive(out string, images []built, platform v1.Platform, prefix, tag string) error {
	content := map[name.Tag]v1.Image{}
	for _, b := range images {
		image, err := b.at(platform)
		if err != nil {
			return fmt.Errorf("image %s: %w", b.name, err)
		}
		called, err := name.NewTag(fmt.Sprintf("%s/%s:%s", prefix, b.name, tag))
		if err != nil {
			return fmt.Errorf("name of image %s: %w", b.name, err)
		}
		content[called] = image
	}
	path := filepath.Join(out, fmt.Sprintf("moorage-%s-%s.tar", platform.OS, platform.Architecture))
	if err := tarball.MultiWriteToFile(path, content); err != nil {
		return fmt.Errorf("archive %s: %w", path, err)
	}
	return nil
}

func (b built) at(platform v1.Platform) (v1.Image, error) {
	top, err := layout.ImageIndexFromPath(b.folder)
	if err != nil {
		return nil, err
	}
	index, err := top.ImageIndex(b.digest)
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, m := range manifest.Manifests {
		if m.Platform != nil && m.Platform.Satisfies(platform) {
			return index.Image(m.Digest)
		}
	}
	return nil, fmt.Errorf("there is none for %s", platform)
}
