// SPDX-License-Identifier: Apache-2.0

package main

import (
	"k8s.io/kubernetes/test/utils/client-go/ktesting"

	"github.com/moorage-dev/moorage/manifests"
	"github.com/moorage-dev/moorage/test/bench/scheduler/crds"
)

type testContext = ktesting.TContext

// The plugin needs no other process to place a pod.
func startMoorage(tCtx testContext) error {
	manifest, err := manifests.FS.ReadFile("crds.yaml")
	if err != nil {
		return err
	}
	return crds.Put(tCtx, tCtx.RESTConfig(), manifest)
}
