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

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/announce"
)

const service = "moorage-extender"

func announcerAt(t *testing.T, kube kubernetes.Interface) *announce.Announcer {
	t.Helper()
	a, err := announce.New(announce.Config{Kube: kube, Name: v1alpha1.ExtenderName, Namespace: "moorage-system", Service: service, Address: "10.0.0.1", Listen: ":8444"})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

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

func TestServiceIsPointedAtTheLeader(t *testing.T) {
	kube := fake.NewClientset(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "moorage-system", Name: service}})
	r := newIdleRig(t, func(r *rig) { r.disk("data") })
	r.x.announcer = announcerAt(t, kube)
	if got := asked(t, kube); got != nil {
		t.Errorf("before anybody leads, %v is asked", got)
	}
	r.lead(time.Hour)
	r.eventually("the leader to be asked", func() bool { return slices.Equal(asked(t, kube), []string{"10.0.0.1"}) })
	r.endTerm()
	if got := asked(t, kube); got != nil {
		t.Errorf("after its term, %v is asked", got)
	}
}
