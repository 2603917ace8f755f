// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/controller"
	"github.com/moorage-dev/moorage/controller/ticket"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/execute"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/observe"
	"github.com/moorage-dev/moorage/manifests"
	"github.com/moorage-dev/moorage/test/bench/scheduler/crds"
)

type testContext = ktesting.TContext

// startMoorage puts the CRDs there, and grants tickets from then on, if it is to, until
// the benchmark ends.
func startMoorage(tCtx testContext, grants bool) error {
	manifest, err := manifests.FS.ReadFile("crds.yaml")
	if err != nil {
		return err
	}
	if err := crds.Put(tCtx, tCtx.RESTConfig(), manifest); err != nil || !grants {
		return err
	}
	ctx, cancel := context.WithCancel(tCtx)
	var running sync.WaitGroup
	tCtx.TB().Cleanup(func() {
		cancel()
		running.Wait()
	})
	return grant(ctx, &running, tCtx.RESTConfig())
}

// grant runs what of the controller grants tickets, with the controller's own
// settings, until ctx is done.
func grant(ctx context.Context, running *sync.WaitGroup, base *rest.Config) error {
	settings := controller.DefaultConfig()
	config := rest.CopyConfig(base)
	config.UserAgent, config.QPS, config.Burst = "moorage-controller", settings.QPS, settings.Burst
	write := rest.CopyConfig(config)
	write.Timeout, write.QPS = settings.WriteTimeout, -1
	read, err := clients(config)
	if err != nil {
		return err
	}
	writing, err := clients(write)
	if err != nil {
		return err
	}
	observer, err := observe.New(observe.Config{Kube: read.kube, Moorage: read.own})
	if err != nil {
		return err
	}
	executor, err := execute.New(execute.Config{
		Kube: writing.kube, Moorage: writing.own, Observer: observer, Timeout: settings.WriteTimeout,
		Turn:  flowcontrol.NewTokenBucketRateLimiter(settings.QPS, settings.Burst).Wait,
		Token: func() string { return string(uuid.NewUUID()) },
	})
	if err != nil {
		return err
	}
	tickets, err := ticket.New(ticket.Config{Cache: observer, Write: executor, Arbiter: arbiter.Arbiter{}, Now: time.Now})
	if err != nil {
		return err
	}
	observer.Subscribe(func(t ledger.Touched) {
		for _, n := range t.Nodes {
			if node := observer.Snapshot().Node(n); node != nil && len(node.Tickets) > 0 {
				tickets.AddNode(n)
			}
		}
		for _, id := range t.Tickets {
			tickets.Add(id)
		}
	})
	running.Go(func() { observer.Run(ctx) })
	running.Go(func() {
		if observer.WaitForSync(ctx) == nil {
			tickets.Run(ctx, settings.Workers, 8)
		}
	})
	return nil
}

// access are the two ways to the API server.
type access struct {
	kube kubernetes.Interface
	own  client.Interface
}

func clients(config *rest.Config) (access, error) {
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	protobuf.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	kube, err := kubernetes.NewForConfig(protobuf)
	if err != nil {
		return access{}, err
	}
	own, err := client.NewForConfig(config)
	return access{kube, own}, err
}
