// SPDX-License-Identifier: Apache-2.0

// Command krew builds kubectl-moorage for every platform of the krew manifest
// beside it, and fills in the manifest's version and the archives' checksums:
//
//	go run ./hack/krew --version v1.2.3 --out bin/krew
//
// Reads: the work tree. Decides: nothing. Writes: a folder with one archive for
// each platform and moorage.yaml, the manifest. The same commit gives the same
// bytes.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"go.yaml.in/yaml/v3"
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

// release is what is to be built.
type release struct {
	repository string // root of the module
	command    string // package of the plugin
	version    string // v1.2.3
	out        string // folder
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("krew", flag.ContinueOnError)
	r := release{}
	flags.StringVar(&r.repository, "repository", ".", "root of the work tree")
	flags.StringVar(&r.command, "command", "./cmd/kubectl-moorage", "package of the plugin")
	flags.StringVar(&r.version, "version", "", "version, as v1.2.3")
	flags.StringVar(&r.out, "out", "krew", "folder for archives and manifest")
	if err := flags.Parse(args); err != nil {
		return err
	}
	return r.write(ctx)
}

// write builds the archives and the manifest that names them.
func (r release) write(ctx context.Context) error {
	// krew takes semantic versions only, and orders by them.
	if !regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`).MatchString(r.version) {
		return fmt.Errorf("--version=%s is none of the kind v1.2.3", r.version)
	}
	raw, err := os.ReadFile(filepath.Join(r.repository, "hack/krew/moorage.yaml"))
	if err != nil {
		return err
	}
	var manifest yaml.Node
	if err := yaml.Unmarshal(raw, &manifest); err != nil {
		return fmt.Errorf("hack/krew/moorage.yaml: %w", err)
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	spec := at(manifest.Content[0], "spec")
	was := at(spec, "version")
	platforms := at(spec, "platforms")
	if was == nil || platforms == nil || len(platforms.Content) == 0 {
		return errors.New("hack/krew/moorage.yaml has no version or no platforms")
	}
	for _, platform := range platforms.Content {
		if err := r.platform(ctx, platform, was.Value); err != nil {
			return err
		}
	}
	was.Value = r.version
	text, err := yaml.Marshal(&manifest)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "moorage.yaml"), text, 0o644)
}

// platform builds the archive of one platform, and fills in its entry.
func (r release) platform(ctx context.Context, entry *yaml.Node, was string) error {
	labels := at(entry, "selector", "matchLabels")
	uri, sum, binary := at(entry, "uri"), at(entry, "sha256"), at(entry, "bin")
	system, machine := at(labels, "os"), at(labels, "arch")
	if uri == nil || sum == nil || binary == nil || system == nil || machine == nil {
		return fmt.Errorf("line %d of hack/krew/moorage.yaml: a platform needs os, arch, uri, sha256 and bin", entry.Line)
	}
	folder, err := os.MkdirTemp("", "moorage-krew-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, binary.Value)
	if err := r.compile(ctx, system.Value, machine.Value, file); err != nil {
		return err
	}
	content, err := archive(file, filepath.Join(r.repository, "LICENSE"))
	if err != nil {
		return err
	}
	uri.Value = strings.ReplaceAll(uri.Value, was, r.version)
	sum.Value = fmt.Sprintf("%x", sha256.Sum256(content))
	fmt.Println(sum.Value, path.Base(uri.Value))
	return os.WriteFile(filepath.Join(r.out, path.Base(uri.Value)), content, 0o644)
}

// compile makes a static binary in which nothing tells where it was made.
func (r release) compile(ctx context.Context, system, machine, file string) error {
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w -buildid= -X github.com/moorage-dev/moorage/internal/report.Version="+r.version, "-o", file, r.command)
	command.Dir = r.repository
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+machine)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s/%s: go build %s: %w\n%s", system, machine, r.command, err, out)
	}
	return nil
}

// at follows keys down mappings; nil if one is not there.
func at(node *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		var below *yaml.Node
		if node != nil && node.Kind == yaml.MappingNode {
			for i := 0; i+1 < len(node.Content); i += 2 {
				if node.Content[i].Value == key {
					below = node.Content[i+1]
				}
			}
		}
		node = below
	}
	return node
}
