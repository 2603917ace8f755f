// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/apitest"
	"github.com/moorage-dev/moorage/test/leaktest"
)

func controllerMethods() []string {
	return []string{"ControllerPublishVolume", "ControllerUnpublishVolume", "ControllerGetVolume"}
}

// The list would answer before the driver is asked.
func (d *socketDriver) unlisted() {
	d.can = []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME, csi.ControllerServiceCapability_RPC_GET_VOLUME,
		csi.ControllerServiceCapability_RPC_LIST_VOLUMES_PUBLISHED_NODES,
	}
}

func noLeak(t *testing.T) (ended func()) {
	t.Helper()
	return leaktest.Check(t, "github.com/moorage-dev/moorage/controller/attacher.", "github.com/moorage-dev/moorage/controller/attacher/driver", "google.golang.org/grpc")
}

// Each call gets each code, once before and once after the work.
func TestEveryCodeOverTheWire(t *testing.T) {
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		t.Run(code.String(), func(t *testing.T) {
			server, driver := cluster(t, 3), newSocketDriver(t)
			ended := noLeak(t)
			driver.unlisted()
			driver.failures = map[string][]failure{}
			for _, method := range controllerMethods() {
				driver.failures[method] = []failure{{code: code}, {code: code, done: true}}
			}
			driver.start(t)
			c := testConfig(driver)
			c.RetryFirst = time.Millisecond
			r := sidecar(t, server, c)
			told := watchErrors(t, server)
			attach(t, server, "va0", "pv0", "node1", false)
			eventually(t, "attached", attached(server, "va0"))
			detach(t, server, "va0")
			eventually(t, "detached", gone(server, "va0"))
			for i, name := range []string{"va1", "va2"} { // with a look each, before the detach
				attach(t, server, name, fmt.Sprintf("pv%d", i+1), "node1", true)
				eventually(t, "attached", attached(server, name))
				want(t, server, name)
				detach(t, server, name)
				eventually(t, "its end", gone(server, name))
			}
			eventually(t, "every call has failed twice", driver.spent)
			if err := r.stop(); err != nil {
				t.Errorf("the attacher ended with %v", err)
			}
			told.check(t, code)
			driver.stop()
			ended()
		})
	}
}

func want(t *testing.T, server *apitest.Server, name string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{v1alpha1.AnnotationWanted: "default/pod"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := server.Kube.StorageV1().VolumeAttachments().Patch(context.Background(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (d *socketDriver) spent() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, list := range d.failures {
		if len(list) > 0 {
			return false
		}
	}
	return true
}

type seenErrors struct {
	stop func()
	seen chan *storagev1.VolumeError
}

func watchErrors(t *testing.T, server *apitest.Server) *seenErrors {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &seenErrors{stop: cancel, seen: make(chan *storagev1.VolumeError, 1000)}
	go func() {
		defer close(s.seen)
		watch, err := server.Kube.StorageV1().VolumeAttachments().Watch(ctx, metav1.ListOptions{})
		if err != nil {
			return // no errors were told
		}
		for event := range watch.ResultChan() {
			if va, ok := event.Object.(*storagev1.VolumeAttachment); ok {
				for _, e := range []*storagev1.VolumeError{va.Status.AttachError, va.Status.DetachError} {
					if e != nil {
						s.seen <- e
					}
				}
			}
		}
	}()
	return s
}

func (s *seenErrors) check(t *testing.T, code codes.Code) {
	t.Helper()
	s.stop()
	var all []*storagev1.VolumeError
	for e := range s.seen {
		all = append(all, e)
	}
	wrong := slices.ContainsFunc(all, func(e *storagev1.VolumeError) bool {
		return e.ErrorCode == nil || codes.Code(*e.ErrorCode) != code || e.Message != "rpc error: code = "+code.String()+" desc = the disk said no"
	})
	if len(all) == 0 || wrong {
		t.Errorf("%s is told as %v", code, all)
	}
}

func TestListFailsWithEveryCode(t *testing.T) {
	server, driver := cluster(t, 1), newSocketDriver(t)
	ended := noLeak(t)
	driver.failures = map[string][]failure{}
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		driver.failures["ListVolumes"] = append(driver.failures["ListVolumes"], failure{code: code})
	}
	driver.start(t)
	c := testConfig(driver)
	c.ReconcileSync = 5 * time.Millisecond
	r := sidecar(t, server, c)
	attach(t, server, "va0", "pv0", "node1", false)
	eventually(t, "attached", attached(server, "va0"))
	eventually(t, "the list has failed with every code", driver.spent)
	driver.change(func(d *socketDriver) { d.published["h0"], d.calls = nil, nil })
	eventually(t, "published again", func() bool { return slices.Contains(driver.heard(), "publish h0 id-node1") })
	if err := r.stop(); err != nil {
		t.Errorf("the attacher ended with %v", err)
	}
	driver.stop()
	ended()
}

func TestHangsOverTheWire(t *testing.T) {
	for _, method := range append(controllerMethods(), "ListVolumes") {
		t.Run(method, func(t *testing.T) {
			server, driver := cluster(t, 3), newSocketDriver(t)
			ended := noLeak(t)
			release := make(chan struct{})
			driver.failures = map[string][]failure{method: {{code: codes.Internal, hang: release}}}
			if method != "ListVolumes" {
				driver.unlisted()
			}
			driver.start(t)
			c := testConfig(driver)
			c.Timeout, c.RetryFirst, c.ReconcileSync = 50*time.Millisecond, time.Millisecond, 10*time.Millisecond
			r := sidecar(t, server, c)
			for i := range 3 {
				name := fmt.Sprintf("va%d", i)
				attach(t, server, name, fmt.Sprintf("pv%d", i), "node1", true)
				eventually(t, "attached", attached(server, name))
				if method == "ControllerGetVolume" {
					want(t, server, name)
				}
				detach(t, server, name)
				eventually(t, "its end", gone(server, name))
			}
			eventually(t, "the call has hung", driver.spent)
			if err := r.stop(); err != nil {
				t.Errorf("the attacher ended with %v", err)
			}
			close(release)
			driver.stop()
			ended()
		})
	}
}
