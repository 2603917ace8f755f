// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The namespace is another, since a release can't always change its form.
func (s *story) variants(ctx context.Context) error {
	any := func(string) bool { return true }
	if err := s.monitoring(ctx); err != nil {
		return err
	}
	// Values name it: roles for drivers are made in the drivers' namespace.
	const elsewhere = "variants"
	if _, err := s.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: elsewhere}}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("namespace %s: %w", elsewhere, err)
	}
	files, err := filepath.Glob(filepath.Join(s.repository, "test/install/testdata/variants/*.yaml"))
	if err != nil || len(files) == 0 {
		return errors.Join(err, errors.New("there are no variants"))
	}
	for _, file := range files {
		rendered, err := s.helmCommand(ctx, "template", release, s.chart, "--namespace", elsewhere,
			"--set", "image.registry="+registry, "--values", file)
		if err != nil {
			return err
		}
		accounts := func(kind string) bool { return kind == "ServiceAccount" }
		if err := errors.Join(s.apply(ctx, rendered, nil, accounts), s.apply(ctx, rendered, []string{metav1.DryRunAll}, any)); err != nil {
			return fmt.Errorf("variant %s: %w", filepath.Base(file), err)
		}
	}
	fmt.Printf("     %d variants\n", len(files))
	return s.client.CoreV1().Namespaces().Delete(ctx, elsewhere, metav1.DeleteOptions{})
}

// The Prometheus operator's module has its definitions as data.
func (s *story) monitoring(ctx context.Context) error {
	raw, err := s.execute(ctx, nil, "go", "mod", "download", "-C", "test/promql/operator", "-json", "github.com/prometheus-operator/prometheus-operator")
	if err != nil {
		return err
	}
	var module struct{ Dir string }
	if err := json.Unmarshal([]byte(raw), &module); err != nil {
		return fmt.Errorf("where the Prometheus operator's module is: %w", err)
	}
	for _, plural := range []string{"servicemonitors", "podmonitors", "prometheusrules"} {
		definition, err := os.ReadFile(filepath.Join(module.Dir, "example/prometheus-operator-crd/monitoring.coreos.com_"+plural+".yaml"))
		if err != nil {
			return err
		}
		if err := s.apply(ctx, string(definition), nil, func(string) bool { return true }); err != nil {
			return err
		}
	}
	return nil
}
