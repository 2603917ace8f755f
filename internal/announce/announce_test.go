// SPDX-License-Identifier: Apache-2.0

package announce

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	applydiscoveryv1 "k8s.io/client-go/applyconfigurations/discovery/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

const service = "moorage-extender"

func serviceWith(selector map[string]string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "moorage-system", Name: service, UID: "service-uid"},
		Spec:       corev1.ServiceSpec{Selector: selector},
	}
}

func announcerAt(kube kubernetes.Interface, address string) *Announcer {
	config := Config{Kube: kube, Name: v1alpha1.ExtenderName, Namespace: "moorage-system", Service: service}
	return &Announcer{config: config, address: netip.MustParseAddr(address), port: 8444, again: time.Millisecond}
}

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

func inAnHour() time.Time { return time.Now().Add(time.Hour) }

func leads(t *testing.T, a *Announcer, until func() time.Time) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); a.Lead(ctx, until) }()
	stop = sync.OnceFunc(func() { cancel(); <-ended })
	t.Cleanup(stop)
	return stop
}

func said(t *testing.T, a *Announcer) {
	t.Helper()
	here := applydiscoveryv1.Endpoint().WithAddresses(a.address.String()).WithConditions(applydiscoveryv1.EndpointConditions().WithReady(true))
	if err := a.inTime(t.Context(), inAnHour, here); err != nil {
		t.Fatal(err)
	}
}

func becomes(t *testing.T, kube kubernetes.Interface, want ...string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		return slices.Equal(asked(t, kube), want), nil
	})
	if err != nil {
		t.Fatalf("%v are asked, want %v", asked(t, kube), want)
	}
}

// The next leader's word replaces a dead leader's. A leader repairs foreign writes.
func TestLeaderHasTheLastWord(t *testing.T) {
	kube := fake.NewClientset(serviceWith(nil))
	dead, next := announcerAt(kube, "10.0.0.1"), announcerAt(kube, "10.0.0.2")
	said(t, dead)
	stop := leads(t, next, inAnHour)
	becomes(t, kube, "10.0.0.2")
	if err := kube.DiscoveryV1().EndpointSlices("moorage-system").Delete(t.Context(), service, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	becomes(t, kube, "10.0.0.2")
	stop()
	becomes(t, kube)
}

func TestNothingIsSaidAfterTheLease(t *testing.T) {
	kube := fake.NewClientset(serviceWith(nil))
	said(t, announcerAt(kube, "10.0.0.2"))
	stop := leads(t, announcerAt(punctual{kube}, "10.0.0.1"), func() time.Time { return time.Now().Add(-time.Second) })
	stop()
	becomes(t, kube, "10.0.0.2")
}

type punctual struct{ kubernetes.Interface }

func (p punctual) CoreV1() typedcorev1.CoreV1Interface { return punctualCore{p.Interface.CoreV1()} }

type punctualCore struct{ typedcorev1.CoreV1Interface }

func (p punctualCore) Services(namespace string) typedcorev1.ServiceInterface {
	return punctualServices{p.CoreV1Interface.Services(namespace)}
}

type punctualServices struct{ typedcorev1.ServiceInterface }

func (p punctualServices) Get(ctx context.Context, name string, o metav1.GetOptions) (*corev1.Service, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return p.ServiceInterface.Get(ctx, name, o)
}

// A slice can't mix families.
func TestFamiliesHaveTheirSlices(t *testing.T) {
	kube := fake.NewClientset(serviceWith(nil))
	leads(t, announcerAt(kube, "fd00::1"), inAnHour)
	becomes(t, kube, "fd00::1")
	slice, err := kube.DiscoveryV1().EndpointSlices("moorage-system").Get(t.Context(), service+"-ipv6", metav1.GetOptions{})
	if err != nil || slice.AddressType != discoveryv1.AddressTypeIPv6 {
		t.Errorf("the slice for IPv6 is %+v, %v", slice, err)
	}
}

func TestAnnouncementIsTriedAgain(t *testing.T) {
	kube := fake.NewClientset()
	leads(t, announcerAt(kube, "10.0.0.1"), inAnHour)
	if _, err := kube.CoreV1().Services("moorage-system").Create(t.Context(), serviceWith(nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	becomes(t, kube, "10.0.0.1")
}

// Its own selector would also select standby processes.
func TestServiceWithASelectorIsRefused(t *testing.T) {
	a := announcerAt(fake.NewClientset(serviceWith(map[string]string{"app": "x"})), "10.0.0.1")
	if err := a.inTime(t.Context(), inAnHour); err == nil || !strings.Contains(err.Error(), "selector") {
		t.Errorf("the error is %v", err)
	}
}

func TestWhereToBeReached(t *testing.T) {
	for _, test := range []struct{ address, listen, want string }{
		{"10.0.0.1", ":8444", ""}, {"fd00::1", "[::]:8444", ""}, {"::ffff:10.0.0.1", ":8444", ""},
		{"", ":8444", "IP address"}, {"extender", ":8444", "IP address"}, {"0.0.0.0", ":8444", "IP address"},
		{"10.0.0.1", ":0", "port"}, {"10.0.0.1", ":https", "port"}, {"10.0.0.1", "8444", "--extender-listen"},
	} {
		a, err := New(Config{Service: service, Address: test.address, Listen: test.listen})
		switch {
		case test.want == "" && (err != nil || a.port != 8444):
			t.Errorf("%+v: %+v, %v", test, a, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%+v: the error is %v", test, err)
		}
	}
	if a, err := New(Config{Address: "10.0.0.1"}); a != nil || err != nil {
		t.Errorf("without a Service: %+v, %v", a, err)
	}
}
