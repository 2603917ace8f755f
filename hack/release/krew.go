// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"go.yaml.in/yaml/v3"
)

// only is empty for all platforms of the krew manifest.
type plugin struct {
	program
	only []v1.Platform
	out  string // folder
}

var semantic = regexp.MustCompile(`^v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)

// write builds the archives and their manifest. The same commit gives the same bytes.
func (p plugin) write(ctx context.Context) error {
	if !semantic.MatchString(p.version) {
		return fmt.Errorf("--version=%s is none of the kind v1.2.3", p.version)
	}
	raw, err := os.ReadFile(filepath.Join(p.repository, "hack/krew/moorage.yaml"))
	if err != nil {
		return err
	}
	var manifest yaml.Node
	if err := yaml.Unmarshal(raw, &manifest); err != nil {
		return fmt.Errorf("hack/krew/moorage.yaml: %w", err)
	}
	if err := os.MkdirAll(p.out, 0o755); err != nil {
		return err
	}
	spec := at(manifest.Content[0], "spec")
	was := at(spec, "version")
	platforms := at(spec, "platforms")
	if was == nil || platforms == nil || len(platforms.Content) == 0 {
		return errors.New("hack/krew/moorage.yaml has no version or no platforms")
	}
	if len(p.only) > 0 {
		platforms.Content = slices.DeleteFunc(platforms.Content, func(entry *yaml.Node) bool { return !p.wanted(entry) })
	}
	if len(platforms.Content) == 0 {
		return fmt.Errorf("hack/krew/moorage.yaml has none of the platforms %v", p.only)
	}
	for _, platform := range platforms.Content {
		if err := p.platform(ctx, platform, was.Value); err != nil {
			return err
		}
	}
	was.Value = p.version
	text, err := yaml.Marshal(&manifest)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.out, "moorage.yaml"), text, 0o644)
}

func (p plugin) wanted(entry *yaml.Node) bool {
	labels := at(entry, "selector", "matchLabels")
	system, machine := at(labels, "os"), at(labels, "arch")
	return system != nil && machine != nil && slices.ContainsFunc(p.only, func(w v1.Platform) bool {
		return w.OS == system.Value && w.Architecture == machine.Value
	})
}

func (p plugin) platform(ctx context.Context, entry *yaml.Node, was string) error {
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
	if err := p.compile(ctx, system.Value, machine.Value, file); err != nil {
		return err
	}
	content, err := targz(file, filepath.Join(p.repository, "LICENSE"))
	if err != nil {
		return err
	}
	uri.Value = strings.ReplaceAll(uri.Value, was, p.version)
	sum.Value = fmt.Sprintf("%x", sha256.Sum256(content))
	fmt.Println(sum.Value, path.Base(uri.Value))
	return os.WriteFile(filepath.Join(p.out, path.Base(uri.Value)), content, 0o644)
}

// at is nil if a key is missing.
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
