// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const published = "oci://ghcr.io/moorage-dev/charts/moorage"

func (s *story) serveRegistry(ctx context.Context) error {
	serve := exec.CommandContext(context.WithoutCancel(ctx), "go", "run", "-C", "hack/release", "./registry")
	serve.Dir = s.repository
	input, err := serve.StdinPipe()
	if err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	output, err := serve.StdoutPipe()
	if err == nil {
		err = serve.Start()
	}
	if err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	s.later(func() { _ = errors.Join(input.Close(), serve.Wait()) })
	host, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return fmt.Errorf("name of the registry: %w", err)
	}
	raw, err := os.ReadFile(filepath.Join(s.repository, "charts/moorage/Chart.yaml"))
	if err != nil {
		return err
	}
	var chart struct{ Version string }
	if err := yaml.Unmarshal(raw, &chart); err != nil {
		return fmt.Errorf("Chart.yaml: %w", err)
	}
	s.version = chart.Version
	s.registry = strings.TrimSpace(host) + "/moorage-dev"
	s.chart = "oci://" + s.registry + "/charts/moorage"
	return nil
}

// Its images have a small program, since Moorage's take long to build: the pods run the binaries of make
// binaries.
func (s *story) publish(ctx context.Context) error {
	if err := s.serveRegistry(ctx); err != nil {
		return err
	}
	_, err := s.execute(ctx, nil, "go", "run", "-C", "hack/release", ".", "release", "--registry", s.registry, "--version", "v"+s.version,
		"--program", "./hack/testdata/hello", "--out", filepath.Join(s.dir, "release"))
	return err
}

func (s *story) pull(image string) error {
	path, ours := strings.CutPrefix(image, s.registry+"/")
	if !ours {
		return nil
	}
	name, tag, _ := strings.Cut(path, ":")
	host, folder, _ := strings.Cut(s.registry, "/")
	answer, err := http.Head("http://" + host + "/v2/" + folder + "/" + name + "/manifests/" + tag)
	if err != nil {
		return fmt.Errorf("image %s: %w", image, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("image %s can't be pulled: %s", image, answer.Status)
	}
	return nil
}

func (s *story) plain(args []string) []string {
	if slices.Contains(args, s.chart) {
		return append(args, "--plain-http")
	}
	return args
}

func (s *story) helmScript() string {
	return `#!/bin/sh
for arg; do
  shift
  if [ "$arg" = ` + published + ` ]; then set -- "$@" ` + s.chart + ` --plain-http; else set -- "$@" "$arg"; fi
done
exec ` + s.helm + ` "$@"
`
}
