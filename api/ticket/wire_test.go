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

type sent struct{ method, query, contentType, body string }

func answers(t *testing.T, asked chan<- sent) *httptest.Server {
	made := &v1alpha1.VolumeTicket{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindVolumeTicket},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly", UID: "uid-1", ResourceVersion: "7", Labels: map[string]string{v1alpha1.LabelManagedBy: integrator}},
		Status:     v1alpha1.VolumeTicketStatus{Conditions: []metav1.Condition{{Type: v1alpha1.TicketSatisfied, Status: metav1.ConditionTrue}}},
	}
	there := false
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
		case r.Method == http.MethodPost:
			there = true
			said := ticketOf(t, body)
			made.Spec, made.Annotations = said.Spec, said.Annotations
		case !there:
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

func ticketOf(t *testing.T, body []byte) v1alpha1.VolumeTicket {
	var said v1alpha1.VolumeTicket
	if err := json.Unmarshal(body, &said); err != nil {
		t.Error(err)
	}
	return said
}

// Create touches no other object. Renewals are merge patches of the UID and the time only. Delete names the
// UID and the read version.
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
	if !slices.Equal(methods, []string{"GET", "POST", "PATCH", "GET", "DELETE"}) {
		t.Fatalf("sent %v", methods)
	}
	for i, content := range []string{"application/json", "application/merge-patch+json"} {
		is := all[i+1]
		if said := ticketOf(t, []byte(is.body)); is.query != "fieldManager="+integrator || is.contentType != content || len(said.Status.Conditions) > 0 {
			t.Errorf("sent %+v", is)
		}
		at := ticketOf(t, []byte(is.body)).Annotations[v1alpha1.AnnotationRenewed]
		if _, err := time.Parse(time.RFC3339Nano, at); err != nil {
			t.Errorf("it is renewed at %q: %v", at, err)
		}
	}
	if made := ticketOf(t, []byte(all[1].body)); made.Spec.NodeName != "n1" || made.Labels[v1alpha1.LabelManagedBy] != integrator || made.Annotations[v1alpha1.AnnotationSession] == "" {
		t.Errorf("made %+v", made)
	}
	if renewed := ticketOf(t, []byte(all[2].body)); renewed.UID != "uid-1" || len(renewed.Annotations) != 1 {
		t.Errorf("renewed %+v", renewed)
	}
	var options metav1.DeleteOptions
	if err := json.Unmarshal([]byte(all[4].body), &options); err != nil || options.Preconditions == nil ||
		string(*options.Preconditions.UID) != "uid-1" || *options.Preconditions.ResourceVersion != "7" {
		t.Errorf("deleted with %s", all[4].body)
	}
}
