// SPDX-License-Identifier: Apache-2.0

package realdriver

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	computev1 "google.golang.org/api/compute/v1"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	gce "sigs.k8s.io/gcp-compute-persistent-disk-csi-driver/pkg/gce-cloud-provider/compute"
	driver "sigs.k8s.io/gcp-compute-persistent-disk-csi-driver/pkg/gce-pd-csi-driver"

	"github.com/moorage-dev/moorage/controller/attacher"
	"github.com/moorage-dev/moorage/test/apitest"
)

const (
	driverName = "pd.csi.storage.gke.io"
	project    = "test-project"
	zone       = "us-central1-a"
	patience   = 30 * time.Second
)

type calls struct {
	mu   sync.Mutex
	list []string
}

func (c *calls) note(_ context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	line := ""
	switch r := request.(type) {
	case *csi.ControllerPublishVolumeRequest:
		line = "publish " + filepath.Base(r.GetVolumeId()) + " " + filepath.Base(r.GetNodeId())
	case *csi.ControllerUnpublishVolumeRequest:
		line = "unpublish " + filepath.Base(r.GetVolumeId()) + " " + filepath.Base(r.GetNodeId())
	}
	if line != "" {
		c.mu.Lock()
		c.list = append(c.list, line)
		c.mu.Unlock()
	}
	return handler(context.Background(), request)
}

func (c *calls) heard() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.list)
}

func startDriver(t *testing.T) (socket string, heard *calls, cloud *gce.FakeCloudProvider) {
	t.Helper()
	cloud, err := gce.CreateFakeCloudProvider(project, zone, []*gce.CloudDisk{disk("disk1"), disk("disk2")})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"node1", "node2"} {
		cloud.InsertInstance(&computev1.Instance{Name: name, Disks: []*computev1.AttachedDisk{}}, zone, name)
	}
	pd := driver.GetGCEDriver()
	identity := driver.NewIdentityServer(pd)
	controller := driver.NewControllerServer(pd, cloud, time.Millisecond, time.Second, nil, false, false,
		driver.MultiZoneVolumeHandleConfig{}, driver.ListVolumesConfig{}, driver.ProvisionableDisksConfig{}, false, &driver.GCEControllerServerArgs{})
	if err := pd.SetupGCEDriver(driverName, "test", nil, nil, identity, controller, nil); err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "pd") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	socket = filepath.Join(folder, "csi.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	heard = &calls{}
	server := grpc.NewServer(grpc.UnaryInterceptor(heard.note))
	csi.RegisterIdentityServer(server, identity)
	csi.RegisterControllerServer(server, controller)
	go func() { _ = server.Serve(listener) }() // ends with Stop
	t.Cleanup(server.Stop)
	return socket, heard, cloud
}

func disk(name string) *gce.CloudDisk {
	return gce.CloudDiskFromV1(&computev1.Disk{
		Name: name, Zone: zone, SizeGb: 10, Status: "READY",
		Type:     fmt.Sprintf("projects/%s/zones/%s/diskTypes/pd-balanced", project, zone),
		SelfLink: fmt.Sprintf("projects/%s/zones/%s/disks/%s", project, zone, name),
	})
}

func startAttacher(t *testing.T, server *apitest.Server, socket string) {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["test"] = &clientcmdapi.Cluster{Server: server.Kube.CoreV1().RESTClient().Get().URL().Scheme + "://" + server.Kube.CoreV1().RESTClient().Get().URL().Host}
	config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test"}
	config.CurrentContext = "test"
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	c := attacher.DefaultConfig()
	c.Kubeconfig, c.Address, c.RetryFirst = kubeconfig, socket, 10*time.Millisecond
	c.Workers = 1 // the fake cloud takes one call at a time
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- attacher.Run(ctx, c) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the attacher ended with %v", err)
		}
	})
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func putVolumes(server *apitest.Server) {
	for _, node := range []string{"node1", "node2"} {
		server.Put("csinodes", &storagev1.CSINode{
			ObjectMeta: metav1.ObjectMeta{Name: node},
			Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{
				Name: driverName, NodeID: fmt.Sprintf("projects/%s/zones/%s/instances/%s", project, zone, node),
			}}},
		})
	}
	once := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	server.Put("persistentvolumes", &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv1"},
		Spec: corev1.PersistentVolumeSpec{AccessModes: once, PersistentVolumeSource: corev1.PersistentVolumeSource{
			CSI: &corev1.CSIPersistentVolumeSource{Driver: driverName, VolumeHandle: fmt.Sprintf("projects/%s/zones/%s/disks/disk1", project, zone)},
		}},
	})
	server.Put("persistentvolumes", &corev1.PersistentVolume{ // from before the migration
		ObjectMeta: metav1.ObjectMeta{
			Name: "pv2", Labels: map[string]string{corev1.LabelTopologyZone: zone},
			Annotations: map[string]string{"pv.kubernetes.io/migrated-to": driverName},
		},
		Spec: corev1.PersistentVolumeSpec{AccessModes: once, PersistentVolumeSource: corev1.PersistentVolumeSource{
			GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "disk2", FSType: "ext4"},
		}},
	})
}

func create(t *testing.T, server *apitest.Server, name, pv, node string) {
	t.Helper()
	_, err := server.Kube.StorageV1().VolumeAttachments().Create(context.Background(), &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: driverName, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, server *apitest.Server, name string) {
	t.Helper()
	if err := server.Kube.StorageV1().VolumeAttachments().Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestPersistentDisks(t *testing.T) {
	socket, heard, cloud := startDriver(t)
	server := apitest.Start(t)
	putVolumes(server)
	startAttacher(t, server, socket)
	attached := func(name string) func() bool {
		return func() bool {
			var va storagev1.VolumeAttachment
			return server.Get("volumeattachments", "", name, &va) && va.Status.Attached
		}
	}
	for i, pv := range []string{"pv1", "pv2"} {
		diskName := fmt.Sprintf("disk%d", i+1)
		first, second := pv+"-node1", pv+"-node2"
		create(t, server, first, pv, "node1")
		eventually(t, first+" is attached", attached(first))
		if !holds(t, cloud, "node1", diskName) {
			t.Errorf("%s is not at node1", diskName)
		}
		create(t, server, second, pv, "node2") // too early
		remove(t, server, first)
		eventually(t, second+" is attached", attached(second))
		if holds(t, cloud, "node1", diskName) || !holds(t, cloud, "node2", diskName) {
			t.Errorf("%s is not at node2 alone", diskName)
		}
		remove(t, server, second)
		eventually(t, second+" is gone", func() bool { return !server.Get("volumeattachments", "", second, &storagev1.VolumeAttachment{}) })
	}
	want := []string{
		"publish disk1 node1", "unpublish disk1 node1", "publish disk1 node2", "unpublish disk1 node2",
		"publish disk2 node1", "unpublish disk2 node1", "publish disk2 node2", "unpublish disk2 node2",
	}
	if got := heard.heard(); !slices.Equal(got, want) {
		t.Errorf("the driver heard %q, want %q", got, want)
	}
}

func TestDiskThatIsNotThere(t *testing.T) {
	socket, _, _ := startDriver(t)
	server := apitest.Start(t)
	putVolumes(server)
	server.Put("persistentvolumes", &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv3"},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: driverName, VolumeHandle: fmt.Sprintf("projects/%s/zones/%s/disks/none", project, zone)},
			},
		},
	})
	startAttacher(t, server, socket)
	create(t, server, "va3", "pv3", "node1")
	eventually(t, "the reason is told", func() bool {
		var va storagev1.VolumeAttachment
		return server.Get("volumeattachments", "", "va3", &va) && va.Status.AttachError != nil &&
			va.Status.AttachError.ErrorCode != nil && *va.Status.AttachError.ErrorCode == 5
	})
	remove(t, server, "va3")
	eventually(t, "detached all the same", func() bool { return !server.Get("volumeattachments", "", "va3", &storagev1.VolumeAttachment{}) })
}

func holds(t *testing.T, cloud *gce.FakeCloudProvider, node, disk string) bool {
	t.Helper()
	instance, err := cloud.GetInstanceOrError(context.Background(), project, zone, node)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(instance.Disks, func(d *computev1.AttachedDisk) bool { return d.DeviceName == disk })
}
