// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	core "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/connect"
)

// What the API server has of a service account's token that was made for a pod (KEP-4193):
// the node of that pod.
const (
	claimNode    = "authentication.kubernetes.io/node-name"
	claimNodeUID = "authentication.kubernetes.io/node-uid"
)

// Limits of what one process of each node asks of the API server.
const (
	qps   = 2
	burst = 5
)

// Run publishes what this node has until ctx is done. It returns an error when it can't
// know its node, or see mounts change: then the process must start over.
func Run(ctx context.Context, c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	config, err := connect.Rest(c.Kubeconfig, v1alpha1.NodeName)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = qps, burst
	node, uid, err := identity(ctx, c, config)
	if err != nil {
		return err
	}
	clients, err := client.NewForConfig(config)
	if err != nil {
		return err
	}
	logger := klog.FromContext(ctx).WithValues("node", node)
	ctx, cancel := context.WithCancel(klog.NewContext(ctx, logger))
	defer cancel()
	kube, err := core.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("client of the API server: %w", err)
	}
	a := newAgent(c, clients.NodeVolumes(), node, uid, func() sight { return look(c) })
	a.nodes = kube.Nodes()
	stop, err := serve(ctx, c, a.metrics.registry)
	if err != nil {
		return err
	}
	defer stop()
	logger.Info("Looking at the node", "kubeletRoot", c.KubeletRoot)
	return a.work(ctx, cancel, clients)
}

// work runs the agent and what wakes it. All have ended when it returns.
func (a *agent) work(ctx context.Context, cancel context.CancelFunc, clients client.Interface) error {
	informer := client.NewNodeVolumesInformer(clients, a.node)
	if _, err := informer.AddEventHandler(a.handler()); err != nil {
		return fmt.Errorf("watch NodeVolumes %s: %w", a.node, err)
	}
	watched, looked, waited := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() { defer close(watched); informer.RunWithContext(ctx) }()
	go func() { defer close(looked); a.run(ctx) }()
	go func() { waited <- watchMounts(ctx, a.config.Mounts, a.changed) }()
	err := <-waited
	cancel()
	<-watched
	<-looked
	a.calls.Wait()
	return err
}

// handler takes what the watch of the own object says.
func (a *agent) handler() cache.ResourceEventHandlerFuncs {
	take := func(to func(*v1alpha1.NodeVolumes)) func(any) {
		return func(object any) {
			if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			if own, ok := object.(*v1alpha1.NodeVolumes); ok {
				to(own)
			}
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    take(a.told),
		UpdateFunc: func(_, object any) { take(a.told)(object) },
		DeleteFunc: take(a.gone),
	}
}

// identity is the node that this process may write for.
func identity(ctx context.Context, c Config, config *rest.Config) (string, types.UID, error) {
	if c.Node != "" {
		return c.Node, types.UID(c.NodeUID), nil
	}
	reviews, err := authentication.NewForConfig(config)
	if err != nil {
		return "", "", fmt.Errorf("client of the API server: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.WriteTimeout)
	defer cancel()
	review, err := reviews.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", "", fmt.Errorf("ask the API server for whom the token was made: %w", err)
	}
	extra := review.Status.UserInfo.Extra
	if len(extra[claimNode]) != 1 || len(extra[claimNodeUID]) != 1 {
		return "", "", errors.New("the token names no node: it has to be the projected one of a pod, as DaemonSets have it; or give --node and --node-uid")
	}
	return extra[claimNode][0], types.UID(extra[claimNodeUID][0]), nil
}
