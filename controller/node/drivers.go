// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// drivers calls the CSI drivers of a node through their own sockets, which it finds as the
// kubelet does: by the registration sockets in plugins_registry.
type drivers struct{ kubeletRoot string }

// askTimeout is how long a registration socket may take to name its driver.
const askTimeout = 5 * time.Second

// Unstage implements unstager. A driver that does not stage volumes has nothing to unstage, and
// is not called.
func (d drivers) Unstage(ctx context.Context, driver, handle, path string, calls func()) error {
	socket, err := d.socket(ctx, driver)
	if err != nil {
		return err
	}
	conn, err := dial(socket)
	if err != nil {
		return fmt.Errorf("reach driver %s: %w", driver, err)
	}
	defer conn.Close()
	client := csi.NewNodeClient(conn)
	can, err := client.NodeGetCapabilities(ctx, &csi.NodeGetCapabilitiesRequest{})
	if err != nil {
		return fmt.Errorf("ask driver %s what it can: %w", driver, err)
	}
	for _, c := range can.GetCapabilities() {
		if c.GetRpc().GetType() == csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME {
			calls()
			_, err := client.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: handle, StagingTargetPath: path})
			if err != nil {
				return fmt.Errorf("NodeUnstageVolume: %w", err)
			}
			return nil
		}
	}
	return nil
}

// socket is where a driver serves. Only sockets below the kubelet's folder can be reached.
func (d drivers) socket(ctx context.Context, driver string) (string, error) {
	registry := filepath.Join(d.kubeletRoot, "plugins_registry")
	entries, err := os.ReadDir(registry)
	if err != nil {
		return "", fmt.Errorf("look for driver %s: %w", driver, err)
	}
	var failed []error
	for _, entry := range entries {
		if entry.Type()&os.ModeSocket == 0 || strings.HasPrefix(entry.Name(), ".") { // as kubelets
			continue
		}
		info, err := ask(ctx, filepath.Join(registry, entry.Name()))
		switch {
		case err != nil:
			failed = append(failed, fmt.Errorf("%s: %w", entry.Name(), err))
		case info.GetType() != registerapi.CSIPlugin || info.GetName() != driver:
		case !strings.HasPrefix(filepath.Clean(info.GetEndpoint()), d.kubeletRoot+"/"):
			return "", fmt.Errorf("driver %s serves at %s, which is not below the kubelet's folder", driver, info.GetEndpoint())
		default:
			return filepath.Clean(info.GetEndpoint()), nil
		}
	}
	return "", errors.Join(append([]error{fmt.Errorf("driver %s is not registered with the kubelet", driver)}, failed...)...)
}

// ask asks a registration socket for its driver.
func ask(ctx context.Context, socket string) (*registerapi.PluginInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	conn, err := dial(socket)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return registerapi.NewRegistrationClient(conn).GetInfo(ctx, &registerapi.InfoRequest{})
}

func dial(socket string) (*grpc.ClientConn, error) {
	return grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
}
