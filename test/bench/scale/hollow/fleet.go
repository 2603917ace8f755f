// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/moorage-dev/moorage/test/sandbox/disk/client"
)

// Config needs all fields but Zones, Log and Slots.
type Config struct {
	// API is an administrator's access: each node impersonates itself.
	API    *rest.Config
	Disk   client.Client
	Driver string
	// Slots is per node; 0 states no limit.
	Slots int
	// Status is nodeStatusUpdateFrequency, Lease the duration of Leases.
	Status, Lease time.Duration
	Resolve       func(namespace, claim string) (Volume, bool)
	Log           func(format string, args ...any)
}

func (c Config) Validate() error {
	switch {
	case c.API == nil || c.Driver == "" || c.Resolve == nil:
		return errors.New("hollow nodes: API, Driver and Resolve are needed")
	case c.Status < 100*time.Millisecond || c.Lease < time.Second:
		return fmt.Errorf("hollow nodes: a status interval of %s and Leases of %s: at least 100ms and 1s", c.Status, c.Lease)
	}
	return nil
}

// All nodes share these connections.
const connections = 16

// Fleet has methods that are safe for parallel use.
type Fleet struct {
	config     Config
	transports []http.RoundTripper

	mu    sync.Mutex
	nodes map[string]*Node
	ended sync.WaitGroup
}

func New(c Config) (*Fleet, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Log == nil {
		c.Log = func(string, ...any) {}
	}
	f := &Fleet{config: c, nodes: map[string]*Node{}}
	for range connections {
		api := rest.CopyConfig(c.API)
		// A dialer of its own makes it a connection of its own.
		api.Dial = (&net.Dialer{}).DialContext
		transport, err := rest.TransportFor(api)
		if err != nil {
			return nil, fmt.Errorf("connection of the hollow nodes: %w", err)
		}
		f.transports = append(f.transports, transport)
	}
	return f, nil
}

type asNode struct {
	next http.RoundTripper
	name string
}

func (a asNode) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Impersonate-User", UserPrefix+a.name)
	r.Header["Impersonate-Group"] = []string{"system:nodes", "system:authenticated"}
	r.Header.Set("User-Agent", "kubelet/hollow")
	return a.next.RoundTrip(r)
}

const UserPrefix = "system:node:"

// The client has no limit of requests.
func (f *Fleet) client(name string, number int) (kubernetes.Interface, error) {
	api := rest.CopyConfig(f.config.API)
	api.QPS = -1
	api.ContentType = runtime.ContentTypeProtobuf
	api.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	api.UserAgent = "kubelet/hollow"
	c, err := kubernetes.NewForConfigAndClient(api, &http.Client{Transport: asNode{f.transports[number%len(f.transports)], name}})
	if err != nil {
		return nil, fmt.Errorf("client of %s: %w", name, err)
	}
	return c, nil
}

// Add runs a node until ctx ends; the number spreads the nodes' ticks.
func (f *Fleet) Add(ctx context.Context, name, zone string, number int) error {
	kube, err := f.client(name, number)
	if err != nil {
		return err
	}
	n := newNode(f.config, kube, name, zone)
	if err := n.register(ctx); err != nil {
		return fmt.Errorf("register %s: %w", name, err)
	}
	f.mu.Lock()
	f.nodes[name] = n
	f.mu.Unlock()
	f.ended.Go(func() { n.run(ctx) })
	return nil
}

func (f *Fleet) Wait() { f.ended.Wait() }

func (f *Fleet) node(name string) *Node {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.nodes[name]
}

func (f *Fleet) SeePod(pod *corev1.Pod) {
	if n := f.node(pod.Spec.NodeName); n != nil {
		n.seePod(pod)
	}
}

func (f *Fleet) LosePod(pod *corev1.Pod) {
	if n := f.node(pod.Spec.NodeName); n != nil {
		n.losePod(pod.UID)
	}
}

func (f *Fleet) SeeNode(node *corev1.Node) {
	if n := f.node(node.Name); n != nil {
		n.seeNode(node)
	}
}

// PowerOff makes the node silent, and the disk service knows.
func (f *Fleet) PowerOff(ctx context.Context, name string) error {
	n := f.node(name)
	if n == nil {
		return fmt.Errorf("there is no hollow node %s to switch off", name)
	}
	n.stop()
	return f.config.Disk.Fence(ctx, nodeID(name))
}

func (f *Fleet) PowerOn(ctx context.Context, name string) error {
	n := f.node(name)
	if n == nil {
		return fmt.Errorf("there is no hollow node %s to switch on", name)
	}
	if err := f.config.Disk.Unfence(ctx, nodeID(name)); err != nil {
		return err
	}
	n.boot()
	return nil
}

// It returns false while a volume is not known yet.
func (c Config) volumesOf(pod *corev1.Pod) ([]Volume, bool) {
	var out []Volume
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		volume, ok := c.Resolve(pod.Namespace, v.PersistentVolumeClaim.ClaimName)
		if !ok {
			return nil, false
		}
		out = append(out, volume)
	}
	return out, true
}
