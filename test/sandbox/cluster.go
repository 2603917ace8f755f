// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	diskclient "github.com/moorage-dev/moorage/test/sandbox/disk/client"
	"github.com/moorage-dev/moorage/test/sandbox/internal/supervise"
)

// Cluster is a running cluster: real processes on this machine, in a folder of
// their own. Its methods are safe for parallel use.
type Cluster struct {
	options Options
	site    *site
	folder  *folder
	procs   *supervise.Group
	view    *View
	config  *rest.Config
	client  *kubernetes.Clientset
	dynamic *dynamic.DynamicClient
	control *controlServer

	cancel context.CancelCauseFunc // ends the cluster's observers

	mu      sync.Mutex
	touched bool            // a component was killed, paused or cut off
	off     map[string]bool // nodes that are switched off
	second  map[string]bool // machines that have registered by another machine's name
	keep    bool            // the folder is kept for reading
	stopped bool
}

var ErrStopped = errors.New("the sandbox is stopped")

// Start returns once every node is Ready with its driver. If it fails, no process is left, and the folder
// with the logs is kept for a day. The cluster lives until Stop, not until ctx ends.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("sandbox options: %w", err)
	}
	o, err := o.complete()
	if err != nil {
		return nil, err
	}
	f, err := openFolder(o.BaseDir, o.Name)
	if err != nil {
		return nil, err
	}
	if err := preflight(o, f.path); err != nil {
		return nil, errors.Join(err, f.release(o.Keep))
	}
	s, err := newSite(o, f, time.Now())
	if err != nil {
		return nil, errors.Join(err, f.release(o.Keep))
	}
	c := &Cluster{options: o, site: s, folder: f, procs: supervise.NewGroup(), keep: o.Keep}
	if err := c.start(ctx); err != nil {
		if ctx.Err() == nil { // an interrupt needs no explanation
			c.KeepLogs()
		}
		return nil, errors.Join(c.explain(err), c.Stop())
	}
	return c, nil
}

func (c *Cluster) KeepLogs() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep = true
}

// Stop keeps the folder if it was asked to, or if a component died. A second Stop is no error.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	if c.stopped {
		c.mu.Unlock()
		return nil
	}
	c.stopped = true
	keep := c.keep || c.procs.Failure() != nil
	c.mu.Unlock()
	if c.cancel != nil {
		c.cancel(ErrStopped)
	}
	if c.control != nil {
		c.control.close()
	}
	c.procs.Close()
	c.site.close()
	if c.options.Real {
		if err := cleanReal(c.folder.path); err != nil {
			return errors.Join(err, c.folder.release(true)) // the next start tries again
		}
	}
	if err := c.folder.release(keep); err != nil {
		return fmt.Errorf("remove the cluster's folder: %w", err)
	}
	return nil
}

// Dir is the cluster's folder, with the logs in logs.
func (c *Cluster) Dir() string { return c.folder.path }

func (c *Cluster) Shape() Shape { return c.options.Shape }

func (c *Cluster) Kubeconfig() string { return c.site.adminKubeconfig() }

// Client has all rights and no request limit.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

func (c *Cluster) Dynamic() dynamic.Interface { return c.dynamic }

func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

func (c *Cluster) View() *View { return c.view }

func (c *Cluster) AuditLog() string { return c.site.AuditLog() }

func (c *Cluster) SigningKey() string { return c.site.signingKey }

func (c *Cluster) CSISocket() string { return c.site.csiSocket }

func (c *Cluster) DiskURL() string { return "http://" + c.site.diskAddr }

func (c *Cluster) Disk() diskclient.Client { return diskclient.Client{BaseURL: c.DiskURL()} }

// Failed is closed when a component ended unasked and didn't come back.
func (c *Cluster) Failed() <-chan struct{} { return c.procs.Failed() }

func (c *Cluster) Failure() error { return c.explain(c.procs.Failure()) }

// CPU is the processor time of all processes so far, also of ended processes.
func (c *Cluster) CPU() time.Duration { return c.procs.CPU() }

func (c *Cluster) connect() error {
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		return fmt.Errorf("administrator's kubeconfig: %w", err)
	}
	config.QPS = -1
	config.UserAgent = "moorage-sandbox"
	c.config = config
	// A watch costs the API server work that is measured as others'.
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	protobuf.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	if c.client, err = kubernetes.NewForConfig(protobuf); err != nil {
		return fmt.Errorf("administrator's client: %w", err)
	}
	if c.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return fmt.Errorf("administrator's client: %w", err)
	}
	return nil
}

func (c *Cluster) explain(err error) error {
	var exit *supervise.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	if full := checkDisk(c.folder.path); full != nil {
		return fmt.Errorf("%w; %w", err, full)
	}
	return fmt.Errorf("%w\n%s", err, indent(tail(exit.Log, explainLines)))
}

const explainLines = 15
