// SPDX-License-Identifier: Apache-2.0

package kubectl_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/apitest"
)

func importCluster(t *testing.T) (*apitest.Server, time.Time) {
	t.Helper()
	server, now := load(t, "testdata/detached")
	const driver = "driver.example.com"
	server.Put("csidrivers", &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driver}})
	server.Put("nodes", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1", UID: "w1"}})
	for _, name := range []string{"data", "z"} {
		ns, pv := map[string]string{"data": "shop", "z": "victim"}[name], "pv-"+name
		server.Put("persistentvolumes", &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: pv, UID: "pv"}, Spec: corev1.PersistentVolumeSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, ClaimRef: &corev1.ObjectReference{Namespace: ns, Name: name, UID: "claim"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}}}})
		server.Put("persistentvolumeclaims", &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, UID: "claim"},
			Spec: corev1.PersistentVolumeClaimSpec{VolumeName: pv}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}})
		server.Put("volumeattachments", &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: ledger.AttachmentName(ledger.VolumeID{Driver: driver, Handle: name}, "w1")},
			Spec:       storagev1.VolumeAttachmentSpec{Attacher: driver, NodeName: "w1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}},
			Status:     storagev1.VolumeAttachmentStatus{Attached: true},
		})
	}
	return server, now
}

func TestImportPrints(t *testing.T) {
	server, now := importCluster(t)
	out, errs, code := run(t.Context(), server, now, "import")
	if code != 0 || len(server.Writes()) != 0 || strings.Count(out, "kind: VolumeTicket") != 2 {
		t.Errorf("exit %d, %q, %q, written %q", code, out, errs, server.Writes())
	}
}

func TestImportGoesOn(t *testing.T) {
	server, now := importCluster(t)
	server.Intercept(func(r apitest.Request, serve func()) error {
		if r.Verb == "create" && strings.HasPrefix(r.Name, "shop/") {
			return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "exceeded quota"}}
		}
		serve()
		return nil
	})
	out, errs, code := run(t.Context(), server, now, "import", "--apply")
	if code != 1 || strings.Count(out, "\n") != 1 || !strings.HasSuffix(out, " created in namespace victim\n") {
		t.Errorf("exit %d, %q", code, out)
	}
	words := strings.Join(strings.Fields(errs), " ")
	for _, says := range []string{"VolumeAttachment", "exceeded quota", "1 ticket made.", "1 ticket failed"} {
		if !strings.Contains(words, says) {
			t.Errorf("it does not say %q: %s", says, words)
		}
	}
}

func TestImportTTL(t *testing.T) {
	server, now := importCluster(t)
	for _, args := range [][]string{{"import"}, {"ticket", "make", "look", "--type", "Manual", "--claim", "data", "--node", "w1"}} {
		out, errs, code := run(t.Context(), server, now, append(args, "--ttl", "721h")...)
		if code != 1 || out != "" || !strings.Contains(errs, "720h at most") {
			t.Errorf("%v: exit %d, %q, %q", args, code, out, errs)
		}
	}
}
