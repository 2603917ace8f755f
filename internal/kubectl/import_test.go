// SPDX-License-Identifier: Apache-2.0

package kubectl_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/moorage-dev/moorage/internal/kubectl"
	"github.com/moorage-dev/moorage/test/apitest"
)

const longhornDriver = "driver.longhorn.io"

// longhornCluster has volumes data (namespace shop) and z (namespace victim), node w1, and the items of
// Longhorn's kind by namespace.
func longhornCluster(t *testing.T, items map[string][]any) (*apitest.Server, string) {
	t.Helper()
	server, _ := load(t, "testdata/detached")
	server.Put("csidrivers", &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: longhornDriver}})
	server.Put("nodes", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w1", UID: "w1"}})
	for _, name := range []string{"data", "z"} {
		ns := map[string]string{"data": "shop", "z": "victim"}[name]
		server.Put("persistentvolumes", &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + name, UID: "pv"}, Spec: corev1.PersistentVolumeSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, ClaimRef: &corev1.ObjectReference{Namespace: ns, Name: name, UID: "claim"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: longhornDriver, VolumeHandle: name}}}})
		server.Put("persistentvolumeclaims", &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, UID: "claim"},
			Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-" + name}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}})
	}
	to, _ := url.Parse(server.URL)
	proxy := httputil.NewSingleHostReverseProxy(to)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rest, ok := strings.CutPrefix(r.URL.Path, "/apis/longhorn.io/v1beta2/"); ok {
			var list []any
			for _, namespace := range slices.Sorted(maps.Keys(items)) {
				if rest == "volumeattachments" || rest == "namespaces/"+namespace+"/volumeattachments" {
					list = append(list, items[namespace]...)
				}
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{"items": list})
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	return server, front.URL
}

func runImport(t *testing.T, url string, args ...string) (string, string, int) {
	t.Helper()
	var out, errs bytes.Buffer
	code := kubectl.RunIn(t.Context(), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errs}, args, kubectl.Setting{Server: url, Now: time.Now})
	return out.String(), errs.String(), code
}

func item(volume, key, kind string) any {
	return map[string]any{"metadata": map[string]any{"name": volume},
		"spec": map[string]any{"volume": volume, "attachmentTickets": map[string]any{key: map[string]any{"type": kind, "nodeID": "w1"}}}}
}

// Longhorn's kind in a tenant's namespace, where Longhorn reads none, makes no ticket for a foreign volume.
func TestImportOfATenantsNamespace(t *testing.T) {
	server, at := longhornCluster(t, map[string][]any{"evil": {item("z", "k", "volume-expansion-controller")}, "storage": {item("data", "k", "longhorn-api")}})
	out, errs, code := runImport(t, at, "import", "longhorn", "--apply")
	if code != 0 || len(server.Writes()) != 0 || !strings.Contains(errs, "--longhorn-namespace") {
		t.Errorf("exit %d, %q, %q, written %q", code, out, errs, server.Writes())
	}
	out, errs, code = runImport(t, at, "import", "longhorn", "--longhorn-namespace", "storage")
	if code != 0 || strings.Count(out, "kind: VolumeTicket") != 1 || !strings.Contains(out, `# Longhorn volume "data" in namespace "storage"`) {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
	if _, errs, code = runImport(t, at, "import", "longhorn", "--longhorn-namespace", "../evil"); code != 1 || !strings.Contains(errs, "no name of a namespace") {
		t.Errorf("exit %d, %q", code, errs)
	}
}

// A refused ticket does not stop the rest. It is reported, and each new ticket has one line.
func TestImportGoesOn(t *testing.T) {
	server, at := longhornCluster(t, map[string][]any{"longhorn-system": {item("data", "k", "longhorn-api"), item("z", "k", "volume-rebuilding-controller")}})
	server.Intercept(func(r apitest.Request, serve func()) error {
		if r.Verb == "create" && strings.HasPrefix(r.Name, "shop/") {
			return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "exceeded quota"}}
		}
		serve()
		return nil
	})
	out, errs, code := runImport(t, at, "import", "longhorn", "--apply")
	if code != 1 || strings.Count(out, "\n") != 1 || !strings.HasSuffix(out, " created in namespace victim\n") {
		t.Errorf("exit %d, %q", code, out)
	}
	words := strings.Join(strings.Fields(errs), " ")
	for _, says := range []string{`"data" in namespace "longhorn-system", ticket "k"`, "exceeded quota", "1 ticket made.", "1 ticket failed"} {
		if !strings.Contains(words, says) {
			t.Errorf("it does not say %q: %s", says, words)
		}
	}
}

// An impossible time is refused before any output.
func TestImportTTL(t *testing.T) {
	_, at := longhornCluster(t, map[string][]any{"longhorn-system": {item("data", "k", "longhorn-api")}})
	for _, args := range [][]string{{"import", "longhorn"}, {"import", "attachments"}, {"attach", "pv-data", "--node", "w1"}} {
		out, errs, code := runImport(t, at, append(args, "--ttl", "721h")...)
		if code != 1 || out != "" || !strings.Contains(errs, "720h at most") {
			t.Errorf("%v: exit %d, %q, %q", args, code, out, errs)
		}
	}
}
