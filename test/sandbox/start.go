// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// startTimeout is for a component that hangs: on a busy machine a step takes seconds.
const startTimeout = 3 * time.Minute

type step struct {
	what string // is awaited
	run  func(context.Context) error
}

func (c *Cluster) start(ctx context.Context) error {
	observe, cancel := context.WithCancelCause(context.Background())
	c.cancel = cancel
	began := time.Now()
	steps := []step{
		{"etcd and the disk service", c.startStorage},
		{"the API server", c.startAPIServer},
		{"roles, storage classes and definitions", c.applyManifests},
	}
	if c.options.Bring != nil {
		steps = append(steps, step{"what is installed before the nodes", func(ctx context.Context) error { return c.options.Bring(ctx, c) }})
	}
	if c.options.Nodeless {
		steps = append(steps, step{"the other components", func(context.Context) error { return c.launchRest() }})
	} else {
		steps = append(steps, []step{
			{"observers", func(ctx context.Context) error { return c.observe(ctx, observe) }},
			{fmt.Sprintf("%d nodes to be Ready with their driver", c.options.Nodes), c.startRest},
			{"the node controller to let pods in", c.awaitSchedulable},
		}...)
	}
	if c.options.MoorageNode {
		steps = append(steps, step{"each node to say what it has", c.startAgents})
	}
	if c.options.Mode.Moorage() && c.options.Bring == nil {
		steps = append(steps, step{"Moorage to serve and to lead", c.awaitMoorage})
	}
	for _, step := range steps {
		c.options.Progress(fmt.Sprintf("%5.1fs  %s", time.Since(began).Seconds(), step.what))
		if err := c.take(ctx, step); err != nil {
			return fmt.Errorf("sandbox: waiting for %s: %w", step.what, err)
		}
	}
	control, err := serveControl(c)
	if err != nil {
		return err
	}
	c.control = control
	c.options.Progress(fmt.Sprintf("%5.1fs  ready", time.Since(began).Seconds()))
	return nil
}

func (c *Cluster) take(ctx context.Context, s step) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not done after %s; the logs are in %s", startTimeout, c.site.logs))
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	go func() {
		select {
		case <-c.procs.Failed():
			fail(c.procs.Failure())
		case <-ctx.Done():
		}
	}()
	err := s.run(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

func (c *Cluster) launch(names ...string) error {
	for _, component := range c.site.components() {
		if !slices.Contains(names, component.name) {
			continue
		}
		if err := c.procs.Launch(component.spec(c.site)); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) startStorage(ctx context.Context) error {
	if err := c.launch(Etcd, DiskService); err != nil {
		return err
	}
	return errors.Join(awaitListener(ctx, c.site.etcdAddr), awaitListener(ctx, c.site.diskAddr))
}

func (c *Cluster) startAPIServer(ctx context.Context) error {
	if err := c.launch(APIServer); err != nil {
		return err
	}
	if err := c.connect(); err != nil {
		return err
	}
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var code int
		c.client.RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&code)
		return code == http.StatusOK, nil
	})
	if err != nil {
		return err
	}
	if err := c.createAccounts(ctx); err != nil {
		return err
	}
	// kube-controller-manager asks for a token for each controller before it starts any. At its client's 20
	// requests a second that takes seconds: give it a head start.
	return c.launch(ControllerManager)
}

func (c *Cluster) applyManifests(ctx context.Context) error {
	sources, err := c.manifests()
	if err != nil {
		return err
	}
	a := newApplier(c.client, c.dynamic)
	for _, source := range sources {
		objects, err := readManifests(source)
		if err != nil {
			return err
		}
		for _, o := range objects {
			if !isApplied(o.GetKind()) || !belongs(o, c.options.Shape) {
				continue
			}
			if err := redirectWebhooks(o, c.site.webhookAddr, c.site.authority.PEM); err != nil {
				return err
			}
			if err := a.apply(ctx, o); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Cluster) manifests() ([]fs.FS, error) {
	names := []string{"manifests/driver"}
	own := c.options.Mode.Moorage() && c.options.Bring == nil
	if own {
		names = append(names, "manifests/moorage")
	}
	if c.options.NetworkFences {
		names = append(names, "manifests/csiaddons")
	}
	var sources []fs.FS
	for _, name := range names {
		source, err := fs.Sub(ownManifests, name)
		if err != nil {
			return nil, fmt.Errorf("manifests of the sandbox: %w", err)
		}
		sources = append(sources, source)
	}
	if c.options.NetworkFences {
		sources = append(sources, os.DirFS(c.options.CSIAddons))
	}
	if c.options.Operations.On {
		operations, err := fs.Sub(ownManifests, "manifests/operations")
		if err != nil {
			return nil, fmt.Errorf("manifests of the sandbox: %w", err)
		}
		// Classes are of kinds that must be defined first.
		sources = append(sources, os.DirFS(c.options.SnapshotDefinitions), operations)
	}
	if own && c.options.Manifests != nil {
		sources = append(sources, c.options.Manifests)
	}
	return sources, nil
}

func (c *Cluster) observe(ctx, life context.Context) error {
	if c.options.Mode.Moorage() {
		if err := c.awaitServed(ctx, TicketResource(), HoldResource()); err != nil {
			return err
		}
	}
	if c.options.Operations.On {
		if err := c.awaitServed(ctx, SnapshotResource(), SnapshotContentResource(), GroupSnapshotResource()); err != nil {
			return err
		}
	}
	if c.options.MoorageNode {
		if err := c.awaitServed(ctx, NodeMountReportResource()); err != nil {
			return err
		}
	}
	stop := context.AfterFunc(ctx, func() { c.cancel(context.Cause(ctx)) })
	defer stop()
	view, err := newView(life, c.client, c.dynamic, c.options.Shape, c.Disk())
	if err != nil {
		return err
	}
	c.view = view
	return nil
}

// startRest waits until every kubelet reports Ready and its driver's limit.
func (c *Cluster) startRest(ctx context.Context) error {
	if err := c.launchRest(); err != nil {
		return err
	}
	return c.view.Await(ctx, func() error { return c.eachNode(c.nodeReady) })
}

func (c *Cluster) launchRest() error {
	running := c.Components()
	var names []string
	for _, component := range c.site.components() {
		if component.node == "" && !slices.Contains(running, component.name) {
			names = append(names, component.name)
		}
	}
	return c.launch(names...)
}

func (c *Cluster) Logs() []string {
	logs, _ := filepath.Glob(filepath.Join(c.site.logs, "*.log"))
	return logs
}
