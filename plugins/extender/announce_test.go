// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

const service = "moorage-extender"

// serviceWith is the Service of the extender.
func serviceWith(selector map[string]string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "moorage-system", Name: service, UID: "service-uid"},
		Spec:       corev1.ServiceSpec{Selector: selector},
	}
}

func announcerAt(kube kubernetes.Interface, address string) *announcer {
	return &announcer{kube: kube, namespace: "moorage-system", service: service, address: netip.MustParseAddr(address), port: 8444}
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
		owners := slice.OwnerReferences
		if len(owners) != 1 || owners[0].UID != "service-uid" || slice.Labels[discoveryv1.LabelManagedBy] != v1alpha1.ExtenderName {
			t.Errorf("the slice is %+v", slice.ObjectMeta)
		}
		if len(slice.Ports) != 1 || *slice.Ports[0].Name != "https" || *slice.Ports[0].Port != 8444 {
			t.Errorf("the slice has the ports %+v", slice.Ports)
		}
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready == nil || !*endpoint.Conditions.Ready {
				t.Errorf("endpoint %+v is not asked", endpoint)
			}
			out = append(out, endpoint.Addresses...)
		}
	}
	return out
}

// Who stands by is ready and not asked; the leader is, for as long as it leads.
func TestServiceIsPointedAtTheLeader(t *testing.T) {
	kube := fake.NewClientset(serviceWith(nil))
	r := newIdleRig(t, func(r *rig) { r.disk("data") })
	doors, err := open(r.config())
	if err != nil {
		t.Fatal(err)
	}
	defer doors.close()
	if err := doors.ready(r.x); err == nil {
		t.Error("it is ready without a Service that tells it from the leader")
	}
	r.x.Announce = announcerAt(kube, "10.0.0.1")
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

// A leader that died says nothing: the next one's word replaces its.
func TestNextLeaderReplacesADeadOne(t *testing.T) {
	kube := fake.NewClientset(serviceWith(nil))
	for _, address := range []string{"10.0.0.1", "10.0.0.2"} {
		if err := announcerAt(kube, address).announce(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := asked(t, kube); !slices.Equal(got, []string{address}) {
			t.Errorf("%v are asked, want %s", got, address)
		}
	}
	// Families can't be mixed in one slice.
	six := announcerAt(kube, "fd00::1")
	if err := six.announce(t.Context()); err != nil {
		t.Fatal(err)
	}
	slice, err := kube.DiscoveryV1().EndpointSlices("moorage-system").Get(t.Context(), service+"-ipv6", metav1.GetOptions{})
	if err != nil || slice.AddressType != discoveryv1.AddressTypeIPv6 {
		t.Errorf("the slice for IPv6 is %+v, %v", slice, err)
	}
}

// A leader that can't say so yet goes on trying.
func TestAnnouncementIsTriedAgain(t *testing.T) {
	kube := fake.NewClientset()
	done := make(chan error, 1)
	a := announcerAt(kube, "10.0.0.1")
	go func() { done <- a.announce(t.Context()) }()
	if _, err := kube.CoreV1().Services("moorage-system").Create(t.Context(), serviceWith(nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || !slices.Equal(asked(t, kube), []string{"10.0.0.1"}) {
		t.Errorf("asked are %v, %v", asked(t, kube), err)
	}
}

// A Service that selects by itself sends schedulers to those that stand by.
func TestServiceWithASelectorIsRefused(t *testing.T) {
	a := announcerAt(fake.NewClientset(serviceWith(map[string]string{"app": "x"})), "10.0.0.1")
	if err := a.withdraw(t.Context()); err == nil || !strings.Contains(err.Error(), "selector") {
		t.Errorf("the error is %v", err)
	}
}

func TestWhereToBeReached(t *testing.T) {
	for _, test := range []struct{ address, listen, want string }{
		{"10.0.0.1", ":8444", ""}, {"fd00::1", "[::]:8444", ""}, {"::ffff:10.0.0.1", ":8444", ""},
		{"", ":8444", "IP address"}, {"extender", ":8444", "IP address"}, {"0.0.0.0", ":8444", "IP address"},
		{"10.0.0.1", ":0", "port"}, {"10.0.0.1", ":https", "port"}, {"10.0.0.1", "8444", "--listen"},
	} {
		a, err := Config{Service: service, Advertise: test.address, Listen: test.listen}.announcer(nil)
		switch {
		case test.want == "" && (err != nil || a.port != 8444):
			t.Errorf("%+v: %+v, %v", test, a, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%+v: the error is %v", test, err)
		}
	}
	if a, err := (Config{Advertise: "10.0.0.1"}).announcer(nil); a != nil || err != nil {
		t.Errorf("without a Service: %+v, %v", a, err)
	}
}
