// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/api/v1alpha1"
)

type request struct{ method, path, query, contentType, body string }

func serve(t *testing.T, status int, object any) (client.Interface, <-chan request) {
	t.Helper()
	asked := make(chan request, 16)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read request: %v", err)
		}
		asked <- request{r.Method, r.URL.Path, r.URL.RawQuery, r.Header.Get("Content-Type"), string(body)}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		if err := json.NewEncoder(w).Encode(object); err != nil {
			t.Errorf("write answer: %v", err)
		}
	}))
	t.Cleanup(server.Close)
	clients, err := client.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return clients, asked
}

func ticket() *v1alpha1.VolumeTicket {
	return &v1alpha1.VolumeTicket{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindVolumeTicket},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "6f1c"},
		Spec:       v1alpha1.VolumeTicketSpec{Type: v1alpha1.TicketManual, NodeName: "worker-2"},
	}
}

func TestRequests(t *testing.T) {
	clients, asked := serve(t, http.StatusOK, ticket())
	ctx := t.Context()
	tickets := clients.VolumeTickets("shop")
	tests := []struct {
		name string
		call func() (*v1alpha1.VolumeTicket, error)
		want request
	}{
		{"create", func() (*v1alpha1.VolumeTicket, error) { return tickets.Create(ctx, ticket(), metav1.CreateOptions{}) },
			request{method: "POST", path: "/apis/moorage.dev/v1alpha1/namespaces/shop/volumetickets", contentType: "application/json"}},
		{"status", func() (*v1alpha1.VolumeTicket, error) {
			return tickets.UpdateStatus(ctx, ticket(), metav1.UpdateOptions{})
		}, request{method: "PUT", path: "/apis/moorage.dev/v1alpha1/namespaces/shop/volumetickets/6f1c/status", contentType: "application/json"}},
		{"patch", func() (*v1alpha1.VolumeTicket, error) {
			return tickets.Patch(ctx, "6f1c", types.JSONPatchType, []byte(`[]`), metav1.PatchOptions{FieldManager: "m"}, "status")
		}, request{method: "PATCH", path: "/apis/moorage.dev/v1alpha1/namespaces/shop/volumetickets/6f1c/status", query: "fieldManager=m", contentType: "application/json-patch+json"}},
		{"get", func() (*v1alpha1.VolumeTicket, error) {
			return tickets.Get(ctx, "6f1c", metav1.GetOptions{ResourceVersion: "0"})
		}, request{method: "GET", path: "/apis/moorage.dev/v1alpha1/namespaces/shop/volumetickets/6f1c", query: "resourceVersion=0"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.call()
			if err != nil {
				t.Fatal(err)
			}
			if got.Spec.NodeName != "worker-2" {
				t.Errorf("the answer is %+v", got)
			}
			sent := <-asked
			sent.body = ""
			if sent != test.want {
				t.Errorf("asked %+v, want %+v", sent, test.want)
			}
		})
	}
}

func TestClusterScopedPaths(t *testing.T) {
	clients, asked := serve(t, http.StatusOK, map[string]any{})
	if _, err := clients.VolumeHolds().Get(t.Context(), "vh-1", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := clients.AttachPolicies().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := clients.NodeMountReports().Get(t.Context(), "worker-1", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"/apis/moorage.dev/v1alpha1/volumeholds/vh-1", "/apis/moorage.dev/v1alpha1/attachpolicies", "/apis/moorage.dev/v1alpha1/nodemountreports/worker-1"} {
		if got := (<-asked).path; got != want {
			t.Errorf("asked %s, want %s", got, want)
		}
	}
}

// Compare-and-swap must tell a conflict from an absence.
func TestErrorsKeepTheirReason(t *testing.T) {
	conflict := apierrors.NewConflict(v1alpha1.Resource(v1alpha1.ResourceVolumeHolds), "vh-1", nil).Status()
	clients, _ := serve(t, http.StatusConflict, conflict)
	_, err := clients.VolumeHolds().Update(t.Context(), &v1alpha1.VolumeHold{ObjectMeta: metav1.ObjectMeta{Name: "vh-1"}}, metav1.UpdateOptions{})
	if !apierrors.IsConflict(err) {
		t.Errorf("the error is %v, want a conflict", err)
	}
}

func TestNewForConfigLeavesTheConfigAlone(t *testing.T) {
	config := &rest.Config{Host: "https://127.0.0.1:1"}
	if _, err := client.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	if config.GroupVersion != nil || config.APIPath != "" || config.UserAgent != "" {
		t.Errorf("the caller's config was changed: %+v", config)
	}
	if _, err := client.NewForConfig(&rest.Config{Host: "http://[::1"}); err == nil {
		t.Error("a host that is no address is accepted")
	}
}

func TestInformerHoldsWhatTheServerHas(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/apis/moorage.dev/v1alpha1/volumetickets", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		query := r.URL.Query()
		if query.Get("sendInitialEvents") == "true" {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_ = json.NewEncoder(w).Encode(apierrors.NewInvalid(v1alpha1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", nil).Status())
			return
		}
		if query.Get("watch") != "" {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		_ = json.NewEncoder(w).Encode(&v1alpha1.VolumeTicketList{
			TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "VolumeTicketList"},
			ListMeta: metav1.ListMeta{ResourceVersion: "9"},
			Items:    []v1alpha1.VolumeTicket{*ticket()},
		})
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	clients, err := client.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	informer := client.NewVolumeTicketInformer(clients)
	stop := make(chan struct{})
	defer server.CloseClientConnections()
	defer close(stop)
	go informer.Run(stop)

	deadline := make(chan struct{})
	timer := time.AfterFunc(30*time.Second, func() { close(deadline) })
	defer timer.Stop()
	if !cache.WaitForCacheSync(deadline, informer.HasSynced) {
		t.Fatal("the informer never synced")
	}
	found, err := informer.GetIndexer().ByIndex(cache.NamespaceIndex, "shop")
	if err != nil || len(found) != 1 || found[0].(*v1alpha1.VolumeTicket).Spec.NodeName != "worker-2" {
		t.Errorf("namespace shop has %v (%v)", found, err)
	}
}
