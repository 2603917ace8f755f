// SPDX-License-Identifier: Apache-2.0

package ticket_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/api/ticket"
	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// sent is what an API server was sent.
type sent struct{ method, query, contentType, body string }

// answers serves one ticket: none before it is applied, and then one that is satisfied.
func answers(t *testing.T, asked chan<- sent) *httptest.Server {
	made := &v1alpha1.VolumeTicket{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindVolumeTicket},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly", UID: "uid-1", ResourceVersion: "7", Labels: map[string]string{v1alpha1.LabelManagedBy: integrator}},
		Status:     v1alpha1.VolumeTicketStatus{Conditions: []metav1.Condition{{Type: v1alpha1.TicketSatisfied, Status: metav1.ConditionTrue}}},
	}
	applied := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") != "" {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		asked <- sent{r.Method, r.URL.RawQuery, r.Header.Get("Content-Type"), string(body)}
		var answer any = made
		switch {
		case r.Method == http.MethodPatch:
			applied = true
			made.Spec = specOf(t, body)
		case !applied:
			w.WriteHeader(http.StatusNotFound)
			answer = apierrors.NewNotFound(v1alpha1.Resource(v1alpha1.ResourceVolumeTickets), "nightly").Status()
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func specOf(t *testing.T, body []byte) v1alpha1.VolumeTicketSpec {
	var said v1alpha1.VolumeTicket
	if err := json.Unmarshal(body, &said); err != nil {
		t.Error(err)
	}
	return said.Spec
}

// A ticket is made and renewed by server-side apply, of what the integrator says and nothing
// else: the first time without force, so that another integrator's stays its own, and then of
// the ticket with that UID. It is deleted by its UID.
func TestWhatIsSent(t *testing.T) {
	asked := make(chan sent, 10)
	server := answers(t, asked)
	clients, err := client.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	tickets, err := ticket.New(clients, integrator)
	if err != nil {
		t.Fatal(err)
	}
	h, err := tickets.Acquire(t.Context(), nightly())
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := h.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(asked)
	all := []sent{}
	for s := range asked {
		all = append(all, s)
	}
	methods := []string{}
	for _, s := range all {
		methods = append(methods, s.method)
	}
	if !slices.Equal(methods, []string{"GET", "PATCH", "PATCH", "DELETE"}) {
		t.Fatalf("sent %v", methods)
	}
	for i, want := range []struct{ query, uid string }{{"fieldManager=" + integrator + "&force=false", ""}, {"fieldManager=" + integrator + "&force=true", "uid-1"}} {
		patch := all[i+1]
		var said struct {
			Metadata map[string]any `json:"metadata"`
			Spec     map[string]any `json:"spec"`
			Status   any            `json:"status"`
		}
		if err := json.Unmarshal([]byte(patch.body), &said); err != nil {
			t.Fatal(err)
		}
		uid, _ := said.Metadata["uid"].(string)
		if patch.query != want.query || patch.contentType != "application/apply-patch+yaml" || uid != want.uid ||
			said.Status != nil || said.Metadata["creationTimestamp"] != nil || said.Spec["nodeName"] != "n1" {
			t.Errorf("sent %+v", patch)
		}
		annotations, _ := said.Metadata["annotations"].(map[string]any)
		at, _ := annotations[v1alpha1.AnnotationRenewed].(string)
		if _, err := time.Parse(time.RFC3339Nano, at); err != nil {
			t.Errorf("it is renewed at %q: %v", at, err)
		}
	}
	var options metav1.DeleteOptions
	if err := json.Unmarshal([]byte(all[3].body), &options); err != nil || options.Preconditions == nil || string(*options.Preconditions.UID) != "uid-1" {
		t.Errorf("deleted with %s", all[3].body)
	}
}
