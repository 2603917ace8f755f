// SPDX-License-Identifier: Apache-2.0

// Command image builds the OCI images of Moorage's components, without a
// container engine: from scratch, one static binary each, for several platforms,
// without root, and reproducible: the same commit gives the same digests. Beside
// each image is its SBOM, as an artifact that refers to it.
//
// Reads: the work tree. Decides: nothing. Writes: a folder in the OCI layout for
// each component, which any tool can push:
//
//	go run -C hack/image . --out images
//	crane push images/moorage ghcr.io/you/moorage:1
//
// and, for each platform, a file with all of them, which clusters on one machine load
// (docs/operate/images.md).
//
// With --check it builds each image twice and compares the digests, and runs the
// one for this machine from its own root.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	out := flags.String("out", "images", "folder for one OCI layout per component")
	repository := flags.String("repository", "../..", "root of the work tree")
	platforms := flags.String("platforms", "linux/amd64,linux/arm64", "platforms, separated by commas")
	components := flags.String("components", "moorage,moorage-attacher,moorage-node", "components, separated by commas")
	prefix := flags.String("prefix", "moorage.local", "what the images' names begin with in the files that clusters on one machine load")
	tag := flags.String("tag", "latest", "the images' tag there")
	version := flags.String("version", "unknown", "version that the binaries report")
	checked := flags.Bool("check", false, "build each image twice, and run it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	linked, err := kubernetesVersion(ctx, *repository)
	if err != nil {
		return err
	}
	var parsed []v1.Platform
	for _, text := range strings.Split(*platforms, ",") {
		platform, err := v1.ParsePlatform(text)
		if err != nil {
			return fmt.Errorf("--platforms: %w", err)
		}
		parsed = append(parsed, *platform)
	}
	var images []built
	for _, component := range strings.Split(*components, ",") {
		b := build{repository: *repository, command: "./cmd/" + component, name: component, version: *version, linked: []string{linked}, platforms: parsed}
		folder := filepath.Join(*out, component)
		digest, err := b.write(ctx, folder)
		if err != nil {
			return fmt.Errorf("image %s: %w", component, err)
		}
		fmt.Println(component, digest)
		images = append(images, built{component, folder, digest})
		if !*checked {
			continue
		}
		if err := b.again(ctx, folder, digest); err != nil {
			return fmt.Errorf("image %s: %w", component, err)
		}
	}
	for _, platform := range parsed {
		if err := archive(*out, images, platform, *prefix, *tag); err != nil {
			return err
		}
	}
	return nil
}

// again builds an image a second time, wants the same digest, and runs it.
func (b build) again(ctx context.Context, folder string, digest v1.Hash) error {
	second, err := b.write(ctx, folder)
	if err != nil {
		return err
	}
	if second != digest {
		return fmt.Errorf("the second build has the digest %s, and the first %s", second, digest)
	}
	said, err := check(ctx, folder, digest, "--help")
	if err != nil {
		return err
	}
	if !strings.Contains(said, b.name) {
		return fmt.Errorf("--help does not name the program:\n%s", said)
	}
	first, _, _ := strings.Cut(said, "\n")
	fmt.Printf("  the same twice, and runs: %s\n", first)
	return nil
}

// kubernetesVersion is what the linker tells the libraries of Kubernetes about
// themselves: the release that the work tree requires. They report it, and
// compare it with the API server's.
func kubernetesVersion(ctx context.Context, repository string) (string, error) {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	list.Dir = repository
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("which Kubernetes is required in %s: %w", repository, err)
	}
	return "k8s.io/component-base/version.gitVersion=" + strings.TrimSpace(string(out)), nil
}
