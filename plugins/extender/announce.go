// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	applydiscoveryv1 "k8s.io/client-go/applyconfigurations/discovery/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// announceRetry is the pause after an announcement that failed.
const announceRetry = time.Second

// announcer points a Service without a selector at the process that leads: the
// Service's one EndpointSlice names the leader and nobody else. So those that
// stand by can be ready, with warm caches, and are asked nothing. Serial.
type announcer struct {
	kube               kubernetes.Interface
	namespace, service string
	// address and port are where schedulers reach this process.
	address netip.Addr
	port    int32
}

// servicePort is what the Service calls its port.
const servicePort = "https"

// family is the kind of the address, and the name of the EndpointSlice, whose
// kind never changes.
func (a *announcer) family() (discoveryv1.AddressType, string) {
	if a.address.Is4() {
		return discoveryv1.AddressTypeIPv4, a.service
	}
	return discoveryv1.AddressTypeIPv6, a.service + "-ipv6"
}

// announce has the Service send everybody here. It tries until it is told, or
// ctx is done.
func (a *announcer) announce(ctx context.Context) error {
	return wait.PollUntilContextCancel(ctx, announceRetry, true, func(ctx context.Context) (bool, error) {
		err := a.write(ctx, applydiscoveryv1.Endpoint().WithAddresses(a.address.String()).
			WithConditions(applydiscoveryv1.EndpointConditions().WithReady(true).WithServing(true).WithTerminating(false)))
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Nobody is sent here yet, though this process leads")
		}
		return err == nil, nil
	})
}

// withdraw has the Service send nobody anywhere, until another process leads. To
// be called while this one still has the lease.
func (a *announcer) withdraw(ctx context.Context) error { return a.write(ctx) }

// write says in the EndpointSlice where schedulers are answered. It belongs to
// the Service, and goes with it.
func (a *announcer) write(ctx context.Context, endpoints ...*applydiscoveryv1.EndpointApplyConfiguration) error {
	service, err := a.kube.CoreV1().Services(a.namespace).Get(ctx, a.service, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("whose endpoint to be: --service=%s: %w", a.service, err)
	}
	if len(service.Spec.Selector) > 0 {
		return fmt.Errorf("the Service %s has a selector, by which others are asked, too: take it away, or leave out --service", a.service)
	}
	family, name := a.family()
	slice := applydiscoveryv1.EndpointSlice(name, a.namespace).
		WithLabels(map[string]string{discoveryv1.LabelServiceName: a.service, discoveryv1.LabelManagedBy: v1alpha1.ExtenderName}).
		WithOwnerReferences(applymetav1.OwnerReference().WithAPIVersion("v1").WithKind("Service").WithName(service.Name).WithUID(service.UID)).
		WithAddressType(family).
		WithPorts(applydiscoveryv1.EndpointPort().WithName(servicePort).WithPort(a.port).WithProtocol(corev1.ProtocolTCP)).
		WithEndpoints(endpoints...)
	// What a leader before wrote is overwritten: only one leads.
	_, err = a.kube.DiscoveryV1().EndpointSlices(a.namespace).Apply(ctx, slice, metav1.ApplyOptions{FieldManager: v1alpha1.ExtenderName, Force: true})
	if err != nil {
		return fmt.Errorf("write EndpointSlice %s: %w", name, err)
	}
	return nil
}

// announcer returns what Service and Advertise ask for; nil if it is nothing.
func (c Config) announcer(kube kubernetes.Interface) (*announcer, error) {
	if c.Service == "" {
		return nil, nil
	}
	address, err := netip.ParseAddr(c.Advertise)
	if err != nil || address.IsUnspecified() {
		return nil, fmt.Errorf("--advertise-address=%s must be the IP address at which schedulers reach this process", c.Advertise)
	}
	_, listen, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	port, err := strconv.ParseUint(listen, 10, 16)
	if err != nil || port == 0 {
		return nil, fmt.Errorf("--service needs a port in --listen=%s that schedulers can be sent to", c.Listen)
	}
	return &announcer{
		kube: kube, namespace: c.Namespace, service: c.Service,
		address: address.Unmap(), port: int32(port),
	}, nil
}
