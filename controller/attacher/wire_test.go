// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/test/apitest"
)

func TestStaysWhereItIsWanted(t *testing.T) {
	server, driver := cluster(t, 1), newSocketDriver(t)
	driver.start(t)
	driver.change(func(d *socketDriver) { d.unpublish = status.Error(codes.FailedPrecondition, "not now") })
	sidecar(t, server, testConfig(driver))
	attach(t, server, "va1", "pv0", "node1", true)
	eventually(t, "attached", attached(server, "va1"))
	detach(t, server, "va1")
	eventually(t, "the refusal is told", func() bool {
		va, _ := read(server, "va1")
		return va.Status.DetachError != nil && strings.Contains(va.Status.DetachError.Message, "not now")
	})
	annotate(t, server, "va1", v1alpha1.AnnotationWanted, "pod-1")
	eventually(t, "the deletion ends", gone(server, "va1"))
	attach(t, server, "va1", "pv0", "node1", true)
	eventually(t, "attached again", attached(server, "va1"))
	driver.change(func(d *socketDriver) {
		if !slices.Equal(d.published["h0"], []string{"id-node1"}) {
			t.Errorf("the volume is at %v", d.published["h0"])
		}
	})
}

func TestLooksBeforeItUnpublishes(t *testing.T) {
	server, driver := cluster(t, 1), newSocketDriver(t)
	driver.start(t)
	sidecar(t, server, testConfig(driver))
	attach(t, server, "va1", "pv0", "node1", true)
	eventually(t, "attached", attached(server, "va1"))
	annotate(t, server, "va1", v1alpha1.AnnotationWanted, "pod-1")
	detach(t, server, "va1")
	eventually(t, "the deletion ends", gone(server, "va1"))
	calls := slices.DeleteFunc(driver.heard(), func(c string) bool { return c == "list" })
	if want := []string{"publish h0 id-node1", "look h0"}; !slices.Equal(calls, want) {
		t.Errorf("the calls are %q, want %q", calls, want)
	}
}

func annotate(t *testing.T, server *apitest.Server, name, key, value string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)
	if _, err := server.Kube.StorageV1().VolumeAttachments().Patch(context.Background(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Another writer adds a finalizer just before each of the attacher's writes.
func TestOthersWriteToo(t *testing.T) {
	server, driver := cluster(t, 1), newSocketDriver(t)
	driver.start(t)
	var pv corev1.PersistentVolume
	server.Get("persistentvolumes", "", "pv0", &pv)
	pv.Spec.CSI.ControllerPublishSecretRef = &corev1.SecretReference{Namespace: "default", Name: "key"}
	server.Put("persistentvolumes", &pv)
	server.Put("secrets", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "key"}, Data: map[string][]byte{"password": []byte("p")}})
	var mu sync.Mutex
	meddled := map[string]bool{}
	server.Intercept(func(r apitest.Request, serve func()) error {
		mu.Lock()
		first := r.Verb == "patch" && !meddled[r.Resource]
		meddled[r.Resource] = meddled[r.Resource] || first
		mu.Unlock()
		if first && r.Resource == "persistentvolumes" {
			pv.Finalizers = []string{"example.com/other"}
			server.Put("persistentvolumes", &pv)
		}
		if first && r.Resource == "volumeattachments" {
			va, _ := read(server, r.Name)
			va.Finalizers = []string{"example.com/other"}
			server.Put("volumeattachments", &va)
		}
		serve()
		return nil
	})
	sidecar(t, server, testConfig(driver))
	attach(t, server, "va1", "pv0", "node1", false)
	eventually(t, "attached", attached(server, "va1"))
	va, _ := read(server, "va1")
	server.Get("persistentvolumes", "", "pv0", &pv)
	for what, finalizers := range map[string][]string{"VolumeAttachment": va.Finalizers, "PersistentVolume": pv.Finalizers} {
		if !slices.Equal(finalizers, []string{"example.com/other", convert.AttacherFinalizer(testDriver)}) {
			t.Errorf("the %s has the finalizers %v", what, finalizers)
		}
	}
	driver.change(func(d *socketDriver) {
		if d.secrets["password"] != "p" {
			t.Errorf("the driver was given the secrets %v", d.secrets)
		}
	})
	detach(t, server, "va1")
	eventually(t, "the status is cleared", func() bool {
		va, ok := read(server, "va1")
		return ok && !va.Status.Attached && slices.Equal(va.Finalizers, []string{"example.com/other"})
	})
}
