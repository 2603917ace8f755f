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
//	crane push images/moorage-webhook ghcr.io/you/moorage-webhook:1
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
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
	components := flags.String("components", "moorage-attacher,moorage-controller,moorage-scheduler,moorage-webhook", "components, separated by commas")
	version := flags.String("version", "unknown", "version that the binaries report")
	if err := flags.Parse(args); err != nil {
		return err
	}
	for _, component := range strings.Split(*components, ",") {
		b := build{repository: *repository, command: "./cmd/" + component, name: component, version: *version}
		for _, platform := range strings.Split(*platforms, ",") {
			parsed, err := v1.ParsePlatform(platform)
			if err != nil {
				return fmt.Errorf("--platforms: %w", err)
			}
			b.platforms = append(b.platforms, *parsed)
		}
		digest, err := b.write(ctx, filepath.Join(*out, component))
		if err != nil {
			return fmt.Errorf("image %s: %w", component, err)
		}
		fmt.Println(component, digest)
	}
	return nil
}
