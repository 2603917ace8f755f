// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// variants applies everything that the chart can become to the API server, as a
// dry run: with admission and validation, and nothing stored. They are rendered
// for another namespace, as what differs in one release can't always be changed.
func (s *story) variants(ctx context.Context) error {
	stubs, err := os.ReadFile(filepath.Join(s.repository, "test/install/testdata/monitoring-crds.yaml"))
	if err != nil {
		return err
	}
	any := func(string) bool { return true }
	if err := s.apply(ctx, string(stubs), nil, any); err != nil {
		return err
	}
	elsewhere, err := s.namespace(ctx, "variants", nil)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(s.repository, "test/install/testdata/variants/*.yaml"))
	if err != nil || len(files) == 0 {
		return errors.Join(err, errors.New("there are no variants"))
	}
	for _, file := range files {
		rendered, err := s.helmCommand(ctx, "template", release, "charts/moorage", "--namespace", elsewhere, "--values", file)
		if err != nil {
			return err
		}
		if err := s.apply(ctx, rendered, []string{metav1.DryRunAll}, any); err != nil {
			return fmt.Errorf("variant %s: %w", filepath.Base(file), err)
		}
	}
	fmt.Printf("     %d variants\n", len(files))
	return s.client.CoreV1().Namespaces().Delete(ctx, elsewhere, metav1.DeleteOptions{})
}
