// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/moorage-dev/moorage/test/sandbox/real/image"
)

// recipe says how an image is made.
type recipe struct {
	// image is what it is called and what it runs; its folder is filled.
	image image.Image
	// packages are Debian's, with what they depend on if dependencies is set.
	packages     []string
	dependencies bool
	// finish does in the folder what no package does.
	finish func(ctx context.Context, folder string) error
}

// recipes lists the images by name.
func recipes() map[string]recipe {
	return map[string]recipe{
		"busybox": {
			image: image.Image{
				Names:   []string{"docker.io/library/busybox:latest", "docker.io/library/busybox:1.35", "moorage.dev/sandbox/pause:1", "registry.invalid/main:1"},
				Command: []string{"sleep", "infinity"},
			},
			packages: []string{"busybox-static"},
			finish:   applets,
		},
	}
}

// makeImage makes one image, unless it is there.
func makeImage(ctx context.Context, path string, r recipe) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	work, err := os.MkdirTemp("", "moorage-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	r.image.Folder = filepath.Join(work, "root")
	if err := os.Mkdir(r.image.Folder, 0o755); err != nil {
		return err
	}
	if err := unpack(ctx, work, r); err != nil {
		return err
	}
	if err := users(r.image.Folder); err != nil {
		return err
	}
	if r.finish != nil {
		if err := r.finish(ctx, r.image.Folder); err != nil {
			return err
		}
	}
	return r.image.Write(path)
}

// unpack downloads the packages and unpacks them. Their scripts are not run.
func unpack(ctx context.Context, work string, r recipe) error {
	packages := r.packages
	if r.dependencies {
		list, err := closure(ctx, packages)
		if err != nil {
			return err
		}
		packages = list
	}
	if _, err := command(ctx, work, "apt-get", append([]string{"download", "-q", "-o", "APT::Sandbox::User=root"}, packages...)...); err != nil {
		return fmt.Errorf("download of Debian's packages: %w", err)
	}
	archives, err := filepath.Glob(filepath.Join(work, "*.deb"))
	if err != nil {
		return err
	}
	for _, archive := range archives {
		if _, err := command(ctx, work, "dpkg-deb", "-x", archive, r.image.Folder); err != nil {
			return err
		}
	}
	return nil
}

// closure lists packages and what they depend on, without what is only recommended.
func closure(ctx context.Context, packages []string) ([]string, error) {
	out, err := command(ctx, "", "apt-cache", append([]string{
		"depends", "--recurse", "--no-recommends", "--no-suggests", "--no-conflicts", "--no-breaks", "--no-replaces", "--no-enhances",
	}, packages...)...)
	if err != nil {
		return nil, err
	}
	var list []string
	for line := range strings.Lines(out) {
		name := strings.TrimSpace(line)
		if name != "" && line[0] != ' ' && line[0] != '<' {
			list = append(list, name)
		}
	}
	return list, nil
}

// users makes the files and folders that every image needs.
func users(folder string) error {
	var errs []error
	for _, dir := range []string{"bin", "etc", "tmp", "proc", "sys", "dev", "run", "root", "var/tmp"} {
		errs = append(errs, os.MkdirAll(filepath.Join(folder, dir), 0o755))
	}
	for _, dir := range []string{"tmp", "var/tmp"} {
		errs = append(errs, os.Chmod(filepath.Join(folder, dir), 0o777|os.ModeSticky))
	}
	for name, content := range map[string]string{
		"passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
		"group":  "root:x:0:\nnogroup:x:65534:\n",
	} {
		errs = append(errs, os.WriteFile(filepath.Join(folder, "etc", name), []byte(content), 0o644))
	}
	return errors.Join(errs...)
}

// applets makes a link for each of busybox's commands.
func applets(ctx context.Context, folder string) error {
	busybox := filepath.Join(folder, "bin", "busybox")
	list, err := command(ctx, "", busybox, "--list")
	if err != nil {
		return err
	}
	for name := range strings.Lines(list) {
		if name = strings.TrimSpace(name); name == "busybox" {
			continue
		}
		if err := os.Symlink("busybox", filepath.Join(folder, "bin", name)); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}

// command runs a program and returns its output; the error has what it said.
func command(ctx context.Context, dir, name string, args ...string) (string, error) {
	var said strings.Builder
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stderr = dir, &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(said.String()))
	}
	return string(out), nil
}
