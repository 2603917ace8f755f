// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// check fails unless the index is whole, its images have one file each, and this machine's image runs from
// its own root. It returns the entrypoint's answer.
func check(ctx context.Context, folder string, digest v1.Hash, args ...string) (string, error) {
	top, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return "", err
	}
	index, err := top.ImageIndex(digest)
	if err != nil {
		return "", err
	}
	if err := validate.Index(index); err != nil {
		return "", err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return "", err
	}
	for _, descriptor := range manifest.Manifests {
		if p := descriptor.Platform; p.OS != runtime.GOOS || p.Architecture != runtime.GOARCH {
			continue
		}
		image, err := index.Image(descriptor.Digest)
		if err != nil {
			return "", err
		}
		return start(ctx, image, args...)
	}
	return "", fmt.Errorf("there is no image for %s/%s", runtime.GOOS, runtime.GOARCH)
}

// start runs the entrypoint from the unpacked root, as the image's user if the process may do that.
func start(ctx context.Context, image v1.Image, args ...string) (string, error) {
	root, err := os.MkdirTemp("", "moorage-root-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(root)
	// The image's user must reach root's unpacked files.
	if err := os.Chmod(root, 0o755); err != nil {
		return "", err
	}
	if err := unpack(image, root); err != nil {
		return "", err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return "", err
	}
	if want := (build{name: config.Config.Labels["org.opencontainers.image.title"]}).user(); config.Config.User != want || len(config.Config.Entrypoint) != 1 {
		return "", fmt.Errorf("it runs %v as %q", config.Config.Entrypoint, config.Config.User)
	}
	command := exec.CommandContext(ctx, filepath.Join(root, config.Config.Entrypoint[0]), args...)
	command.Dir, command.Env = root, []string{}
	if os.Geteuid() == 0 {
		command.Path, command.Dir = config.Config.Entrypoint[0], config.Config.WorkingDir
		command.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: nonrootID, Gid: nonrootID}}
	}
	out, err := command.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("the entrypoint of the unpacked image: %w\n%s", err, out)
	}
	return string(out), nil
}

// unpack requires root's file, executable for all, writable for none, and without a time.
func unpack(image v1.Image, root string) error {
	content := mutate.Extract(image)
	defer content.Close()
	files := 0
	for archive := tar.NewReader(content); ; files++ {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		mode := header.FileInfo().Mode()
		if header.Uid != 0 || !mode.IsRegular() || mode.Perm() != 0o555 || header.ModTime.Unix() != 0 {
			return fmt.Errorf("%s has mode %s, owner %d, time %s", header.Name, mode, header.Uid, header.ModTime)
		}
		raw, err := io.ReadAll(archive)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(root, filepath.Clean("/"+header.Name)), raw, mode.Perm()); err != nil {
			return err
		}
	}
	if files != 1 {
		return fmt.Errorf("it has %d files, want the binary alone", files)
	}
	return nil
}
