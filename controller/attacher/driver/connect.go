// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-lib-utils/connection"
	"github.com/kubernetes-csi/csi-lib-utils/metrics"
	"github.com/kubernetes-csi/csi-lib-utils/rpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	csitranslation "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"
)

// Config is the driver's place.
type Config struct {
	// Address is the driver's socket: an absolute path or unix://….
	Address string
	// Timeout is for calls about the driver itself; Retry follows a failure.
	Timeout, Retry time.Duration
	// PageSize is the volumes per request; 0: the driver's choice.
	PageSize int32
}

// Validate reports every unusable field.
func (c Config) Validate() error {
	var errs []error
	if c.Address == "" {
		errs = append(errs, errors.New("the driver's address is empty"))
	}
	if c.Timeout <= 0 || c.Retry <= 0 {
		errs = append(errs, errors.New("timeout and retry interval of the driver must be more than 0 s"))
	}
	if c.PageSize < 0 {
		errs = append(errs, errors.New("the number of entries per page must not be negative"))
	}
	return errors.Join(errs...)
}

// Identity is a driver's self-description.
type Identity struct {
	Name string
	// Publishes: it has ControllerPublishVolume.
	Publishes bool
	// PublishReadOnly and SingleNodeMultiWriter are capabilities.
	PublishReadOnly, SingleNodeMultiWriter bool
	// Lists: the driver lists its volumes with their nodes. Looks: for one volume.
	Lists, Looks bool
}

// Driver is a connection. It is safe for parallel use.
type Driver struct {
	config     Config
	connection *grpc.ClientConn
	controller csi.ControllerClient
	metrics    metrics.CSIMetricsManager
}

// Connect waits without limit for the driver's identity. It returns an error only when ctx is done.
func Connect(ctx context.Context, c Config) (*Driver, Identity, error) {
	if err := c.Validate(); err != nil {
		return nil, Identity{}, err
	}
	manager := metrics.NewCSIMetricsManagerForSidecar("")
	d, identity, err := connect(ctx, c, manager)
	if err != nil || !csitranslation.New().IsMigratedCSIDriverByName(identity.Name) {
		return d, identity, err
	}
	// The connection must know migrated drivers from the start: the metrics count migrated volumes apart.
	d.Close()
	return connect(ctx, c, metrics.NewCSIMetricsManagerWithOptions(identity.Name, metrics.WithMigration()))
}

func connect(ctx context.Context, c Config, manager metrics.CSIMetricsManager) (*Driver, Identity, error) {
	logger := klog.FromContext(ctx)
	for {
		conn, err := connection.Connect(ctx, c.Address, manager)
		if err == nil {
			d := &Driver{config: c, connection: conn, controller: csi.NewControllerClient(conn), metrics: manager}
			identity, err := d.Identify(ctx)
			if err == nil {
				manager.SetDriverName(identity.Name)
				return d, identity, nil
			}
			d.Close()
			return nil, Identity{}, err
		}
		logger.Info("The CSI driver can't be reached yet", "address", c.Address, "err", err.Error())
		if err := pause(ctx, c.Retry); err != nil {
			return nil, Identity{}, err
		}
	}
}

// Identify asks until the driver answers. It returns an error only when ctx is done.
func (d *Driver) Identify(ctx context.Context) (Identity, error) {
	logger := klog.FromContext(ctx)
	for {
		identity, err := d.identify(ctx)
		if err == nil {
			return identity, nil
		}
		logger.Info("The CSI driver has not said yet what it is", "address", d.config.Address, "err", err.Error())
		if err := pause(ctx, d.config.Retry); err != nil {
			return Identity{}, err
		}
	}
}

func (d *Driver) identify(ctx context.Context) (Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, d.config.Timeout)
	defer cancel()
	ready, err := rpc.Probe(ctx, d.connection)
	if err != nil {
		return Identity{}, fmt.Errorf("probe: %w", err)
	}
	if !ready {
		return Identity{}, errors.New("it is not ready")
	}
	var identity Identity
	if identity.Name, err = rpc.GetDriverName(ctx, d.connection); err != nil {
		return Identity{}, fmt.Errorf("get its name: %w", err)
	}
	services, err := rpc.GetPluginCapabilities(ctx, d.connection)
	if err != nil {
		return Identity{}, fmt.Errorf("get its services: %w", err)
	}
	if !services[csi.PluginCapability_Service_CONTROLLER_SERVICE] {
		return identity, nil
	}
	can, err := rpc.GetControllerCapabilities(ctx, d.connection)
	if err != nil {
		return Identity{}, fmt.Errorf("get its capabilities: %w", err)
	}
	nodes := can[csi.ControllerServiceCapability_RPC_LIST_VOLUMES_PUBLISHED_NODES]
	identity.Publishes = can[csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME]
	identity.PublishReadOnly = can[csi.ControllerServiceCapability_RPC_PUBLISH_READONLY]
	identity.SingleNodeMultiWriter = can[csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER]
	identity.Lists = identity.Publishes && nodes && can[csi.ControllerServiceCapability_RPC_LIST_VOLUMES]
	identity.Looks = identity.Publishes && nodes && can[csi.ControllerServiceCapability_RPC_GET_VOLUME]
	return identity, nil
}

// Watch calls lost on each break since Connect, until ctx is done, and reconnects even without a call.
func (d *Driver) Watch(ctx context.Context, lost func()) {
	state := connectivity.Ready // the driver had answered
	for d.connection.WaitForStateChange(ctx, state) {
		if state == connectivity.Ready {
			lost()
		}
		if state = d.connection.GetState(); state == connectivity.Idle {
			d.connection.Connect()
		}
	}
}

// Metrics counts the calls to the driver.
func (d *Driver) Metrics() metrics.CSIMetricsManager { return d.metrics }

// Close ends the connection and fails its calls.
func (d *Driver) Close() {
	_ = d.connection.Close() // it can only say that it was closed before
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("wait for the CSI driver: %w", ctx.Err())
	case <-timer.C:
		return nil
	}
}
