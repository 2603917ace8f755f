// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"go.yaml.in/yaml/v3"
)

const home = "ghcr.io/moorage-dev"

// begin returns the version's changelog. An empty changelog, a chart of another version or a missing key is
// an error.
func (r release) begin() (string, error) {
	if !semantic.MatchString(r.version) {
		return "", fmt.Errorf("--version=%s is not of the form v1.2.3: name the version of charts/moorage/Chart.yaml, as in VERSION=v0.1.0", r.version)
	}
	if _, err := name.NewRepository(r.registry+"/moorage", name.StrictValidation); err != nil {
		return "", fmt.Errorf("--registry=%s can't be pushed to: name a registry and a folder in it, as in REGISTRY=registry.example.com/team: %w", r.registry, err)
	}
	if r.sign != "" && r.sign != keyless {
		if _, err := os.Stat(r.sign); err != nil {
			return "", fmt.Errorf("--sign: %w", err)
		}
	}
	version := strings.TrimPrefix(r.version, "v")
	raw, err := os.ReadFile(filepath.Join(r.repository, "charts/moorage/Chart.yaml"))
	if err != nil {
		return "", err
	}
	var chart struct {
		Version    string `yaml:"version"`
		AppVersion string `yaml:"appVersion"`
	}
	if err := yaml.Unmarshal(raw, &chart); err != nil {
		return "", fmt.Errorf("Chart.yaml: %w", err)
	}
	if chart.Version != version || chart.AppVersion != version {
		return "", fmt.Errorf("--version=%s, but Chart.yaml has version %s and appVersion %s", r.version, chart.Version, chart.AppVersion)
	}
	if raw, err = os.ReadFile(filepath.Join(r.repository, "CHANGELOG.md")); err != nil {
		return "", err
	}
	text := section(string(raw), version)
	if text == "" {
		return "", fmt.Errorf("CHANGELOG.md says nothing of %s", version)
	}
	return text + "\n", nil
}

func section(changelog, version string) string {
	var out []string
	within := false
	for line := range strings.Lines(changelog) {
		if strings.HasPrefix(line, "## ") {
			within = strings.Fields(line)[1] == version
		} else if within {
			out = append(out, line)
		}
	}
	return strings.TrimSpace(strings.Join(out, ""))
}

// packChart makes the registry the default of image.registry, and returns the file.
func (r release) packChart(ctx context.Context, files string) (string, error) {
	folder := filepath.Join(r.out, "chart")
	if err := os.CopyFS(folder, os.DirFS(filepath.Join(r.repository, "charts/moorage"))); err != nil {
		return "", err
	}
	if err := replace(filepath.Join(folder, "values.yaml"), "\n  registry: \"\"\n", "\n  registry: "+r.registry+"\n"); err != nil {
		return "", err
	}
	if err := replace(filepath.Join(folder, "Chart.yaml"), " "+home+"/", " "+r.registry+"/"); err != nil {
		return "", err
	}
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, epoch(), epoch())
	})
	if err != nil {
		return "", err
	}
	if err := r.tool(ctx, ".", "helm", "package", folder, "--destination", files); err != nil {
		return "", err
	}
	packed := filepath.Join(files, "moorage-"+strings.TrimPrefix(r.version, "v")+".tgz")
	return packed, os.Chtimes(packed, epoch(), epoch())
}

// replace fails if old is missing.
func replace(file, old, with string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !bytes.Contains(raw, []byte(old)) {
		return fmt.Errorf("%s does not have %q", filepath.Base(file), old)
	}
	return os.WriteFile(file, bytes.ReplaceAll(raw, []byte(old), []byte(with)), 0o644)
}

func (r release) pushChart(ctx context.Context, packed, tag string) (string, error) {
	charts := r.registry + "/charts"
	repository, err := name.NewRepository(charts + "/moorage")
	if err != nil {
		return "", err
	}
	args := []string{"push", packed, "oci://" + charts}
	if repository.Scheme() == "http" { // a registry on this machine
		args = append(args, "--plain-http")
	}
	if err := r.tool(ctx, ".", "helm", args...); err != nil {
		return "", err
	}
	chart, err := remote.Head(repository.Tag(tag), remoteOptions(ctx)...)
	if err != nil {
		return "", err
	}
	fmt.Println("pushed", repository.Tag(tag))
	return repository.Digest(chart.Digest.String()).String(), nil
}
