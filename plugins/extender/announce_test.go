// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/moorage-dev/moorage/internal/announce"
)

const service = "moorage-extender"

func announcerAt(t *testing.T, kube kubernetes.Interface) *announce.Announcer {
	t.Helper()
	a, err := Config{Namespace: "moorage-system", Service: service, Advertise: "10.0.0.1", Listen: ":8444"}.announcer(kube)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// asked lists the addresses that the Service sends schedulers to.
func asked(t *testing.T, kube kubernetes.Interface) []string {
	t.Helper()
	slices, err := kube.DiscoveryV1().EndpointSlices("moorage-system").List(t.Context(), metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			out = append(out, endpoint.Addresses...)
		}
	}
	return out
}

// Who stands by is ready and not asked; the leader is, for as long as it leads.
func TestServiceIsPointedAtTheLeader(t *testing.T) {
	kube := fake.NewClientset(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "moorage-system", Name: service}})
	r := newIdleRig(t, func(r *rig) { r.disk("data") })
	doors, err := open(r.config())
	if err != nil {
		t.Fatal(err)
	}
	defer doors.close()
	if err := doors.ready(r.x); err == nil {
		t.Error("it is ready without a Service that tells it from the leader")
	}
	r.x.Announce = announcerAt(t, kube)
	r.eventually("the one that stands by to be ready", func() bool { return doors.ready(r.x) == nil })
	if got := asked(t, kube); got != nil {
		t.Errorf("before anybody leads, %v is asked", got)
	}
	r.lead(time.Hour)
	r.eventually("the leader to be asked", func() bool { return slices.Equal(asked(t, kube), []string{"10.0.0.1"}) })
	r.endTerm()
	if got := asked(t, kube); got != nil {
		t.Errorf("after its term, %v is asked", got)
	}
	if err := doors.ready(r.x); err != nil {
		t.Errorf("after its term it does not stand by: %v", err)
	}
	doors.stopping.Store(true)
	if err := doors.ready(r.x); err == nil {
		t.Error("it is ready while it stops")
	}
}
