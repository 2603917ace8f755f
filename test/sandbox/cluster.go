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
	second  map[string]bool // machines that have registered by the name of another one
	keep    bool            // the folder is kept for reading
	stopped bool
}

// ErrStopped is the cause of the end of a cluster's observers.
var ErrStopped = errors.New("the sandbox is stopped")

// Start starts a cluster and returns once every node is Ready and has its
// driver registered. When it fails, or ctx ends first, no process is left. A
// failure names the log to read, and the folder with the logs is kept for a day.
// The cluster lives until Stop, not until ctx ends.
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

// KeepLogs makes Stop keep the cluster's folder for a day.
func (c *Cluster) KeepLogs() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep = true
}

// Stop kills every process of the cluster and removes its folder, unless it is kept: by request, or
// because a component died. Stopping twice is not an error.
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

// Dir is the cluster's folder. Its logs are in the folder logs in it.
func (c *Cluster) Dir() string { return c.folder.path }

// Shape is what the cluster was started with.
func (c *Cluster) Shape() Shape { return c.options.Shape }

// Kubeconfig is the path of a kubeconfig with all rights, for any client.
func (c *Cluster) Kubeconfig() string { return c.site.adminKubeconfig() }

// Client is a clientset with all rights and without a request limit.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

// Dynamic is the same for resources without Go types.
func (c *Cluster) Dynamic() dynamic.Interface { return c.dynamic }

// RESTConfig returns a copy of what Client uses.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.config) }

// View is the observer of the cluster.
func (c *Cluster) View() *View { return c.view }

// AuditLog is the path of the API server's audit log.
func (c *Cluster) AuditLog() string { return c.site.AuditLog() }

// SigningKey is the file of the key that service accounts' tokens are signed with.
func (c *Cluster) SigningKey() string { return c.site.signingKey }

// CSISocket is where the controller part of the driver serves, to sidecars as to others.
func (c *Cluster) CSISocket() string { return c.site.csiSocket }

// DiskURL is the admin API of the disk service.
func (c *Cluster) DiskURL() string { return "http://" + c.site.diskAddr }

// Disk is a client of the disk service.
func (c *Cluster) Disk() diskclient.Client { return diskclient.Client{BaseURL: c.DiskURL()} }

// Failed is closed when a component ended without being asked to, and didn't
// come back.
func (c *Cluster) Failed() <-chan struct{} { return c.procs.Failed() }

// Failure says which component that was, and where its log is.
func (c *Cluster) Failure() error { return c.explain(c.procs.Failure()) }

// CPU is the processor time of the cluster's processes so far, ended ones included.
func (c *Cluster) CPU() time.Duration { return c.procs.CPU() }

// connect makes the administrator's clients.
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

// explain adds what a component's death doesn't say itself: the end of its
// log, and whether the disk is full.
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

// explainLines is how much of a dead component's log an error carries.
const explainLines = 15
