// SPDX-License-Identifier: Apache-2.0

package e2e

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
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/moorage-dev/moorage/test/sandbox"
)

const shareDriver = "share.example.com"

const noServer = "the share has no server that has its disk"

// shares is a fake driver that mounts only while a node has the server. It omits the network and the file
// system.
type shares struct {
	*story
	mu      sync.Mutex
	server  string
	refused int
	plugins map[string]func() // each one's end, by node
}

func (s *story) shareDriver() *shares {
	required := false
	_, err := s.Client.StorageV1().CSIDrivers().Create(s.ctx, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: shareDriver}, Spec: storagev1.CSIDriverSpec{AttachRequired: &required}}, metav1.CreateOptions{})
	s.must(err)
	d := &shares{story: s, plugins: map[string]func(){}}
	for _, node := range s.View.Nodes() {
		d.begins(node.Name)
	}
	for node := range d.plugins {
		s.until(node+" has the driver of shares", func() error {
			for _, driver := range s.View.CSINode(node).Spec.Drivers {
				if driver.Name == shareDriver {
					return nil
				}
			}
			return errors.New("it has not")
		})
	}
	return d
}

func (d *shares) begins(node string) {
	folder := d.Cluster.KubeletFolder(node)
	p := &sharePlugin{shares: d, node: node, socket: filepath.Join(folder, "plugins", shareDriver, "csi.sock")}
	plugin, registry := grpc.NewServer(), grpc.NewServer()
	csi.RegisterIdentityServer(plugin, p)
	csi.RegisterNodeServer(plugin, p)
	registerapi.RegisterRegistrationServer(registry, p)
	d.serves(plugin, p.socket)
	d.serves(registry, filepath.Join(folder, "plugins_registry", shareDriver+"-reg.sock"))
	stop := func() {
		registry.Stop()
		plugin.Stop()
	}
	ended := context.AfterFunc(d.ctx, stop) // if the story ends before
	d.plugins[node] = func() {
		if ended() {
			stop()
		}
	}
}

func (d *shares) serves(server *grpc.Server, socket string) {
	d.must(os.MkdirAll(filepath.Dir(socket), 0o755))
	l, err := net.Listen("unix", socket)
	d.must(err)
	go func() { _ = server.Serve(l) }() // an error is that it was stopped
}

func (d *shares) ends(node string) {
	d.plugins[node]()
	delete(d.plugins, node)
}

func (d *shares) end() {
	for node := range d.plugins {
		d.ends(node)
	}
	d.must(d.Client.StorageV1().CSIDrivers().Delete(d.ctx, shareDriver, metav1.DeleteOptions{}))
}

func (d *shares) servedAt(node string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.server = node
}

func (d *shares) refusals() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.refused
}

func (s *story) share(claim string) (remove func()) {
	pv, modes := claim+"-"+s.Namespace, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	_, err := s.Client.CoreV1().PersistentVolumes().Create(s.ctx, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: pv}, Spec: corev1.PersistentVolumeSpec{
		AccessModes: modes, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		ClaimRef:               &corev1.ObjectReference{Namespace: s.Namespace, Name: claim},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: shareDriver, VolumeHandle: pv}},
	}}, metav1.CreateOptions{})
	s.must(err)
	object := sandbox.Claim(claim, corev1.ReadWriteMany)
	object.Spec.VolumeName, object.Spec.StorageClassName = pv, new("")
	s.must(s.CreateClaim(s.ctx, object))
	return func() {
		s.must(errors.Join(
			s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).Delete(s.ctx, claim, metav1.DeleteOptions{}),
			s.Client.CoreV1().PersistentVolumes().Delete(s.ctx, pv, metav1.DeleteOptions{})))
	}
}

type sharePlugin struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedNodeServer
	registerapi.UnimplementedRegistrationServer
	shares       *shares
	node, socket string
}

func (p *sharePlugin) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{Type: registerapi.CSIPlugin, Name: shareDriver, Endpoint: p.socket, SupportedVersions: []string{"1.0.0"}}, nil
}

func (p *sharePlugin) NotifyRegistrationStatus(context.Context, *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	return &registerapi.RegistrationStatusResponse{}, nil
}

func (p *sharePlugin) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: shareDriver, VendorVersion: "1.0.0"}, nil
}

func (p *sharePlugin) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{}, nil
}

func (p *sharePlugin) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

func (p *sharePlugin) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

func (p *sharePlugin) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: "client-" + p.node}, nil
}

func (p *sharePlugin) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	p.shares.mu.Lock()
	defer p.shares.mu.Unlock()
	if p.shares.server == "" {
		p.shares.refused++
		return nil, status.Error(codes.Unavailable, noServer)
	}
	if err := os.MkdirAll(r.GetTargetPath(), 0o750); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func (p *sharePlugin) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := os.Remove(r.GetTargetPath()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, status.Error(codes.Internal, fmt.Sprintf("take the mount away: %v", err))
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}
