// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/moorage-dev/moorage/test/sandbox/disk/block"
	"github.com/moorage-dev/moorage/test/sandbox/disk/csidriver"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
	"github.com/moorage-dev/moorage/test/sandbox/disk/provisioner"
	"github.com/moorage-dev/moorage/test/sandbox/disk/service"
)

const provisionWorkers = 20

func (o serviceOptions) run(ctx context.Context, out io.Writer) error {
	attachFor, err := diskapi.ParseOperations(o.attachFor)
	if err != nil {
		return fmt.Errorf("disk service: attach-for: %w", err)
	}
	detachFor, err := diskapi.ParseOperations(o.detachFor)
	if err != nil {
		return fmt.Errorf("disk service: detach-for: %w", err)
	}
	var devices service.Devices
	if o.realDir != "" {
		disks, err := block.Open(o.realDir)
		if err != nil {
			return fmt.Errorf("disk service: %w", err)
		}
		defer disks.Close()
		devices = disks
	}
	s, err := service.New(service.Config{
		StateDir: o.stateDir, Slots: o.slots, Lenient: o.lenient, Parallel: o.parallel,
		Latencies: map[diskapi.Call]time.Duration{
			diskapi.ControllerPublish: o.attachLatency, diskapi.ControllerUnpublish: o.detachLatency,
			diskapi.CreateSnapshot: o.copyLatency, diskapi.CreateGroupSnapshot: o.copyLatency,
			diskapi.ControllerExpand: o.expandLatency,
		},
		AttachFor: attachFor, DetachFor: detachFor, CopyInBackground: o.copyInBackground, Devices: devices,
	})
	if err != nil {
		return fmt.Errorf("disk service: %w", err)
	}
	err = o.serve(ctx, s, out)
	return errors.Join(err, s.Close())
}

func (o serviceOptions) serve(ctx context.Context, s *service.Service, out io.Writer) error {
	driver, err := csidriver.New(csidriver.Config{
		Name: o.driver, ListVolumes: o.listVolumes, GetVolume: o.getVolume, VolumeHealth: o.volumeHealth,
		Snapshots: o.snapshots, Clones: o.clones, Services: diskapi.Services{
			GroupSnapshots: o.groupSnapshots, Zones: o.zones,
			Expansion: o.expansion, ExpandOffline: strings.Contains(o.detachFor, string(diskapi.ExpandVolume)),
		},
	}, s)
	if err != nil {
		return fmt.Errorf("disk service: %w", err)
	}
	csiListener, err := listenUnix(o.csiEndpoint)
	if err != nil {
		return err
	}
	adminListener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return errors.Join(fmt.Errorf("admin API: %w: choose another --listen", err), csiListener.Close())
	}
	fmt.Fprintf(out, "admin http://%s csi %s\n", adminListener.Addr(), o.csiEndpoint)
	csiServer := grpc.NewServer()
	driver.Register(csiServer)
	admin := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second}
	parts := []func(context.Context) error{
		func(context.Context) error { return csiServer.Serve(csiListener) },
		func(context.Context) error { return admin.Serve(adminListener) },
	}
	if o.kubeconfig != "" {
		parts = append(parts, o.provision)
	}
	err = runUntilFirst(ctx, parts, func() error {
		csiServer.Stop()
		return admin.Close()
	})
	if err != nil {
		return fmt.Errorf("disk service: %w", err)
	}
	return nil
}

// runUntilFirst stops all parts when ctx ends, which is no error, or when a part returns.
func runUntilFirst(ctx context.Context, parts []func(context.Context) error, stop func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, len(parts))
	for _, part := range parts {
		go func() { ended <- part(ctx) }()
	}
	var err error
	running := len(parts)
	select {
	case <-ctx.Done():
	case err = <-ended:
		running--
	}
	cancel()
	err = errors.Join(err, stop())
	for range running {
		// Errors after the stop are not news.
		<-ended
	}
	return err
}

func (o serviceOptions) provision(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return fmt.Errorf("provisioner: read the kubeconfig: %w", err)
	}
	// The API server limits its clients; a limit here would show up in measurements of others.
	config.QPS = -1
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("provisioner: %w", err)
	}
	conn, err := grpc.NewClient(o.csiEndpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("provisioner: CSI endpoint: %w", err)
	}
	defer conn.Close()
	p, err := provisioner.New(provisioner.Config{
		Driver: o.driver, Client: client, Volumes: csi.NewControllerClient(conn), Workers: provisionWorkers,
	})
	if err != nil {
		return err
	}
	return p.Run(ctx)
}

func listenUnix(endpoint string) (net.Listener, error) {
	path, ok := strings.CutPrefix(endpoint, "unix://")
	if !ok || !filepath.IsAbs(path) {
		return nil, fmt.Errorf("csi-endpoint %q is no unix socket: use unix:///absolute/path.sock", endpoint)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove the old CSI socket: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on the CSI socket: %w", err)
	}
	return l, nil
}
