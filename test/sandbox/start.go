// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// startTimeout bounds each step of the start for the case that a component
// hangs: on a busy machine a step takes seconds.
const startTimeout = 3 * time.Minute

// start brings the processes up in the order in which they need each other.
func (c *Cluster) start(ctx context.Context) error {
	observe, cancel := context.WithCancelCause(context.Background())
	c.cancel = cancel
	began := time.Now()
	steps := []struct {
		what string
		run  func(context.Context) error
	}{
		{"etcd and the disk service", c.startStorage},
		{"the API server", c.startAPIServer},
		{"roles, storage classes and definitions", c.applyManifests},
		{"observers", func(ctx context.Context) error { return c.observe(ctx, observe) }},
		{fmt.Sprintf("controllers, scheduler and %d nodes", c.options.Nodes), c.startRest},
		{"every node to be Ready with its driver", c.awaitNodes},
	}
	for _, step := range steps {
		c.options.Progress(fmt.Sprintf("%5.1fs  %s", time.Since(began).Seconds(), step.what))
		if err := c.step(ctx, step.run); err != nil {
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

// step runs one step until it is done, a component dies or time is up.
func (c *Cluster) step(ctx context.Context, run func(context.Context) error) error {
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
	err := run(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// launch starts the named components.
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

// awaitListener waits until somebody listens on a loopback address.
func awaitListener(ctx context.Context, addr string) error {
	return wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		if err != nil {
			return false, nil
		}
		return true, conn.Close()
	})
}

func (c *Cluster) startAPIServer(ctx context.Context) error {
	if err := c.launch(APIServer); err != nil {
		return err
	}
	if err := c.connect(); err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		var code int
		c.client.RESTClient().Get().AbsPath("/readyz").Do(ctx).StatusCode(&code)
		return code == http.StatusOK, nil
	})
}

// applyManifests applies the driver's manifests and, in modes with Moorage,
// Moorage's.
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
			if !isApplied(o.GetKind()) {
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

// manifests lists what is applied in the cluster's mode, in order.
func (c *Cluster) manifests() ([]fs.FS, error) {
	names := []string{"manifests/driver"}
	if c.options.Mode.Moorage() {
		names = append(names, "manifests/moorage")
	}
	var sources []fs.FS
	for _, name := range names {
		source, err := fs.Sub(ownManifests, name)
		if err != nil {
			return nil, fmt.Errorf("manifests of the sandbox: %w", err)
		}
		sources = append(sources, source)
	}
	if c.options.Mode.Moorage() && c.options.Manifests != nil {
		sources = append(sources, c.options.Manifests)
	}
	return sources, nil
}

// observe starts the view. Its informers live as long as the cluster.
func (c *Cluster) observe(ctx, life context.Context) error {
	stop := context.AfterFunc(ctx, func() { c.cancel(context.Cause(ctx)) })
	defer stop()
	view, err := newView(life, c.client, c.dynamic, c.options.Mode.Moorage(), c.Disk())
	if err != nil {
		return err
	}
	c.view = view
	return nil
}

// startRest starts everything that needs a working API server.
func (c *Cluster) startRest(context.Context) error {
	var names []string
	for _, component := range c.site.components() {
		switch component.name {
		case Etcd, DiskService, APIServer:
		default:
			names = append(names, component.name)
		}
	}
	return c.launch(names...)
}

// awaitNodes waits until every kubelet reports Ready and its driver's limit.
func (c *Cluster) awaitNodes(ctx context.Context) error {
	return c.view.Await(ctx, func() error {
		for i := range c.options.Nodes {
			if err := c.nodeReady(NodeName(i + 1)); err != nil {
				return err
			}
		}
		return nil
	})
}

// nodeReady reports what a node still lacks.
func (c *Cluster) nodeReady(name string) error {
	missing := func(what string) error {
		return fmt.Errorf("%s %s; its log is %s", name, what, c.site.logPath(name))
	}
	node := c.view.Node(name)
	switch {
	case node == nil:
		return missing("has not registered itself")
	case !IsReady(node):
		return missing("is not Ready")
	}
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady {
			return missing("still has the taint " + taint.Key)
		}
	}
	csi := c.view.CSINode(name)
	if csi == nil {
		return missing("has no CSINode")
	}
	for _, driver := range csi.Spec.Drivers {
		if driver.Name == DriverName {
			return nil
		}
	}
	return missing("has not registered driver " + DriverName)
}

// IsReady says whether a node's condition Ready is True.
func IsReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Logs lists the log files of the cluster's components.
func (c *Cluster) Logs() []string {
	logs, _ := filepath.Glob(filepath.Join(c.site.logs, "*.log"))
	return logs
}
