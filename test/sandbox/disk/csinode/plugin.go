// SPDX-License-Identifier: Apache-2.0

package csinode

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/csi-addons/spec/lib/go/fence"
	"google.golang.org/grpc"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/moorage-dev/moorage/test/sandbox/disk/client"
)

// Plugin is the node part of the driver. It is safe for parallel use.
type Plugin struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedNodeServer
	fence.UnimplementedFenceControllerServer
	config  Config
	service client.Client
	staged  *staged
	writers *writers
	mounts  *mounts // nil where disks are simulated

	bootMu  sync.Mutex
	bootSet bool // the service's boot count was compared
}

func New(c Config) (*Plugin, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("node plugin: %w", err)
	}
	if err := os.MkdirAll(c.pluginDir(), 0o755); err != nil {
		return nil, fmt.Errorf("node plugin: create its folder: %w", err)
	}
	s, err := openStaged(c.stateFile(), c.mountTable())
	if err != nil {
		return nil, fmt.Errorf("node plugin: %w", err)
	}
	p := &Plugin{config: c, service: c.api(), staged: s}
	p.writers = newWriters(p)
	if c.Disks != "" {
		p.mounts = newMounts(c)
	}
	return p, nil
}

// Run serves until ctx ends, which is no error, or a socket fails. The registration socket comes last: by
// it the kubelet finds the plugin.
func (p *Plugin) Run(ctx context.Context) error {
	plugin, registry := grpc.NewServer(), grpc.NewServer()
	csi.RegisterIdentityServer(plugin, p)
	csi.RegisterNodeServer(plugin, p)
	fence.RegisterFenceControllerServer(plugin, p)
	registerapi.RegisterRegistrationServer(registry, &registration{config: p.config})

	failed := make(chan error, 2)
	for _, s := range []struct {
		path   string
		server *grpc.Server
	}{{p.config.csiSocket(), plugin}, {p.config.registrySocket(), registry}} {
		l, err := listen(s.path)
		if err != nil {
			plugin.Stop()
			return err
		}
		go func() { failed <- s.server.Serve(l) }()
	}
	writing, stop := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() { defer close(stopped); p.writers.run(writing, p.config.WriteTicks) }()
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	registry.Stop()
	plugin.Stop()
	stop()
	<-stopped
	if err != nil {
		return fmt.Errorf("node plugin of %s: %w", p.config.NodeName, err)
	}
	return nil
}

func listen(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("create the socket's folder: %w", err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove the old socket: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return l, nil
}
