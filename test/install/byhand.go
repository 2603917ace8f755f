// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/pods"
)

func (s *story) openForHands(ctx context.Context) error {
	if err := s.serveRegistry(ctx); err != nil {
		return err
	}
	if err := s.startCluster(ctx, sandbox.Upstream, s.programOf, s.makeShop); err != nil {
		return err
	}
	fmt.Printf(`
A cluster of three nodes with a CSI driver, cert-manager, the namespace shop, and no Moorage.
In another terminal, in this folder:

  export KUBECONFIG=%s PATH=%s:$PATH

  make release REGISTRY=%s VERSION=v%s PLATFORMS=linux/amd64
  helm install moorage oci://%s/charts/moorage --plain-http --namespace moorage-system --create-namespace

helm needs --plain-http, because the registry is on this machine. This breaks the cluster:

  moorage-sandbox --name %s fault power-off worker-1

Pods mount volumes and run no programs; only those of Moorage do, as processes of this machine.
kubectl logs shows nothing, and their output is in %s
Ctrl-C ends the cluster.
`, s.cluster.Kubeconfig(), s.binaries, s.registry, s.version, s.registry, filepath.Base(s.cluster.Dir()), s.dir)
	<-ctx.Done()
	return nil
}

func (s *story) makeShop(ctx context.Context) error {
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	if _, err := s.client.CoreV1().Namespaces().Create(ctx, shop, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("namespace shop: %w", err)
	}
	return nil
}

const pullTimeout = time.Minute

func (s *story) programOf(image string) (string, error) {
	if program, done := s.pulled[image]; done {
		return program, nil
	}
	path, ours := strings.CutPrefix(image, s.registry+"/")
	if !ours {
		return "", fmt.Errorf("image %s can't be pulled: this cluster pulls from %s only. Set image.registry, or install the chart of that registry", image, s.registry)
	}
	ctx, cancel := context.WithTimeout(context.Background(), pullTimeout)
	defer cancel()
	folder, err := os.MkdirTemp(s.dir, strings.NewReplacer("/", "-", ":", "-").Replace(path)+"-")
	if err != nil {
		return "", err
	}
	program, err := pods.Pull(ctx, image, folder)
	if err == nil {
		s.pulled[image] = program
	}
	return program, err
}
