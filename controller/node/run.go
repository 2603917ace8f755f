// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"

	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/connect"
	"github.com/moorage-dev/moorage/internal/nodemounts"
)

// Limits of a node's requests to the API server.
const (
	qps   = 2
	burst = 5
)

// Run publishes this node's volumes until ctx is done. After an error, because its node is unknown or has
// changed, or mounts can't be watched, the process must start over.
func Run(ctx context.Context, c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	config, err := connect.Rest(c.Kubeconfig, v1alpha1.NodeName)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = qps, burst
	own, err := identity(ctx, c, config)
	if err != nil {
		return err
	}
	clients, err := client.NewForConfig(config)
	if err != nil {
		return err
	}
	logger := klog.FromContext(ctx).WithValues("node", own.node)
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, logger))
	defer cancel()
	a := newAgent(c, clients.NodeMountReports(), own.node, own.uid, func(before []nodemounts.Alive) sight { return look(c, own.pod, before) })
	a.identify = func(ctx context.Context) (self, error) { return identity(ctx, c, config) }
	stop, err := serve(ctx, c, a.health, a.metrics.registry)
	if err != nil {
		return err
	}
	defer stop()
	logger.Info("Looking at the node", "kubeletRoot", c.KubeletRoot)
	return a.work(ctx, cancel, clients)
}

func (a *agent) work(ctx context.Context, cancel context.CancelFunc, clients client.Interface) error {
	own := client.NewNodeMountReportListWatch(clients, a.node)
	watched, looked, waited := make(chan struct{}), make(chan struct{}), make(chan error, 2)
	go func() { defer close(watched); a.watch(ctx, own) }()
	go func() {
		defer close(looked)
		if err := a.run(ctx); err != nil {
			waited <- err
		}
	}()
	go func() { waited <- watchMounts(ctx, a.config.Mounts, a.changed) }()
	err := <-waited
	cancel()
	<-watched
	<-looked
	return err
}
