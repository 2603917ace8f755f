// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/content/memory"
	"oras.land/oras-go/v2/registry/remote"
)

// Pull writes the entry point's program of an image, from a registry without TLS, to a folder. Other files
// are left out.
func Pull(ctx context.Context, image, folder string) (string, error) {
	repository, err := remote.NewRepository(image)
	if err != nil {
		return "", fmt.Errorf("image %s: %w", image, err)
	}
	repository.PlainHTTP = true
	reference, store := repository.Reference.Reference, memory.New()
	options := oras.DefaultCopyOptions
	options.WithTargetPlatform(&v1.Platform{OS: runtime.GOOS, Architecture: runtime.GOARCH})
	top, err := oras.Copy(ctx, repository, reference, store, reference, options)
	if err != nil {
		return "", fmt.Errorf("image %s can't be pulled: %w", image, err)
	}
	var manifest v1.Manifest
	var config v1.Image
	if err := errors.Join(read(ctx, store, top, &manifest), read(ctx, store, manifest.Config, &config)); err != nil {
		return "", fmt.Errorf("image %s: %w", image, err)
	}
	if len(config.Config.Entrypoint) == 0 {
		return "", fmt.Errorf("image %s names no program to start", image)
	}
	program := config.Config.Entrypoint[0]
	for _, layer := range manifest.Layers {
		raw, err := content.FetchAll(ctx, store, layer)
		if err != nil {
			return "", fmt.Errorf("image %s: %w", image, err)
		}
		switch file, err := unpack(raw, program, folder); {
		case err != nil:
			return "", fmt.Errorf("image %s: %w", image, err)
		case file != "":
			return file, nil
		}
	}
	return "", fmt.Errorf("image %s does not have its program %s", image, program)
}

func read(ctx context.Context, store *memory.Store, of v1.Descriptor, into any) error {
	raw, err := content.FetchAll(ctx, store, of)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

func unpack(layer []byte, program, folder string) (string, error) {
	zipped, err := gzip.NewReader(bytes.NewReader(layer))
	if err != nil {
		return "", err
	}
	for files := tar.NewReader(zipped); ; {
		header, err := files.Next()
		switch {
		case errors.Is(err, io.EOF):
			return "", nil
		case err != nil:
			return "", err
		case path.Clean("/"+header.Name) != path.Clean("/"+program):
			continue
		}
		name := filepath.Join(folder, path.Base(program))
		file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o755)
		if err != nil {
			return "", err
		}
		_, err = io.Copy(file, files)
		return name, errors.Join(err, file.Close())
	}
}
