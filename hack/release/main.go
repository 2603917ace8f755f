// SPDX-License-Identifier: Apache-2.0

// Command release builds what a version of Moorage has, and publishes it:
//
//	go run -C hack/release . images --out DIR
//	go run -C hack/release . krew --version v1.2.3 --out DIR
//	go run -C hack/release . release --version v1.2.3 --registry registry.example.com/team --out DIR
//
// images builds the OCI images of all components, without a container engine: from
// scratch, one static binary each, for several platforms, without root. Beside each
// image is its SBOM, as an artifact that refers to it. It writes a folder in the OCI
// layout for each component, and, for each platform, a file with all of them, which
// clusters on one machine load (docs/operate/quickstart.md). With --check it builds each
// image twice, compares the digests, and runs the image for this machine from its own
// root.
//
// krew builds the archives of kubectl moorage and the krew manifest.
//
// release builds that and the chart, checks it, and then pushes images, SBOMs and chart to a registry,
// and signs them. It leaves a folder with the files and the notes of the release.
//
// Reads: the work tree. Decides: nothing. Writes: folders, and the registry. The same
// commit, version and Go give the same bytes.
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

func components() []string { return []string{"moorage", "moorage-attacher", "moorage-node"} }

func ours(program string) string { return "./cmd/" + program }

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("name one of images, krew and release")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	repository := flags.String("repository", "../..", "root of the work tree")
	out := flags.String("out", "", "folder to write to")
	version := flags.String("version", "unknown", "version, as v1.2.3")
	switch args[0] {
	case "images":
		i := images{command: ours}
		platforms := platformsFlag(flags)
		flags.StringVar(&i.prefix, "prefix", "moorage.local", "what the images' names begin with in the files that clusters on one machine load")
		flags.StringVar(&i.tag, "tag", "latest", "the images' tag there")
		flags.BoolVar(&i.check, "check", false, "build each image twice, and run it")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		var err error
		if i.platforms, err = parsePlatforms(*platforms); err != nil {
			return err
		}
		i.repository, i.out, i.version = *repository, *out, *version
		_, err = i.write(ctx)
		return err
	case "krew":
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return plugin{program{repository: *repository, command: ours("kubectl-moorage"), version: *version}, nil, *out}.write(ctx)
	case "release":
		r := release{command: ours}
		platforms := platformsFlag(flags)
		flags.StringVar(&r.registry, "registry", "", "registry to push to, with a path if need be: registry.example.com/team")
		program := flags.String("program", "", "package to build in place of each program; for tests")
		flags.StringVar(&r.sign, "sign", "", "file of cosign's private key, or keyless; nothing is signed if empty")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		var err error
		if r.platforms, err = parsePlatforms(*platforms); err != nil {
			return err
		}
		if *program != "" {
			r.command = func(string) string { return *program }
		}
		flags.Visit(func(f *flag.Flag) {
			if f.Name == platformsName {
				r.only = r.platforms
			}
		})
		r.repository, r.out, r.version = *repository, *out, *version
		return r.publish(ctx)
	default:
		return fmt.Errorf("%q is none of images, krew and release", args[0])
	}
}

const platformsName = "platforms"

func platformsFlag(flags *flag.FlagSet) *string {
	return flags.String(platformsName, "linux/amd64,linux/arm64", "platforms, separated by commas; a release has archives of kubectl moorage for more, unless platforms are given")
}

func parsePlatforms(list string) ([]v1.Platform, error) {
	var out []v1.Platform
	for text := range strings.SplitSeq(list, ",") {
		platform, err := v1.ParsePlatform(text)
		if err != nil {
			return nil, fmt.Errorf("--platforms: %w", err)
		}
		out = append(out, *platform)
	}
	return out, nil
}

type images struct {
	repository  string              // root of the work tree
	command     func(string) string // package of a program
	version     string              // that the binaries report
	platforms   []v1.Platform
	prefix, tag string // for the files that clusters on one machine load
	check       bool   // build each twice, and run it
	out         string // folder
}

func (i images) write(ctx context.Context) ([]built, error) {
	linked, err := kubernetesVersion(ctx, i.repository)
	if err != nil {
		return nil, err
	}
	var out []built
	for _, name := range components() {
		b := build{program: program{repository: i.repository, command: i.command(name), version: i.version, linked: []string{linked}}, name: name, platforms: i.platforms}
		folder := filepath.Join(i.out, name)
		digest, err := b.write(ctx, folder)
		if err == nil && i.check {
			err = b.again(ctx, folder, digest)
		}
		if err != nil {
			return nil, fmt.Errorf("image %s: %w", name, err)
		}
		fmt.Println(name, digest)
		out = append(out, built{name, folder, digest})
	}
	for _, platform := range i.platforms {
		if err := archive(i.out, out, platform, i.prefix, i.tag); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// again wants the same digest from a second build, and runs it.
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
	return nil
}

// The linker tells Kubernetes' libraries this release. They report it, and compare it with the API
// server's.
func kubernetesVersion(ctx context.Context, repository string) (string, error) {
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	list.Dir = repository
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("which Kubernetes is required in %s: %w", repository, err)
	}
	return "k8s.io/component-base/version.gitVersion=" + strings.TrimSpace(string(out)), nil
}
