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
	applydiscoveryv1 "k8s.io/client-go/applyconfigurations/discovery/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// The pauses after an announcement that failed, and after one that was made:
// what somebody else has written over it is put right.
const (
	announceRetry = time.Second
	announceAgain = 10 * time.Second
)

// announcer points a Service without a selector at the process that leads: the
// Service's one EndpointSlice names the leader and nobody else. So those that
// stand by can be ready, with warm caches, and are asked nothing. Serial.
type announcer struct {
	kube               kubernetes.Interface
	namespace, service string
	// address and port are where schedulers reach this process.
	address netip.Addr
	port    int32
	again   time.Duration
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

// lead has the Service send everybody here until ctx is done, and nobody after
// that. Nothing is written later than until, which is when the lease runs out.
func (a *announcer) lead(ctx context.Context, until func() time.Time) {
	here := applydiscoveryv1.Endpoint().WithAddresses(a.address.String()).
		WithConditions(applydiscoveryv1.EndpointConditions().WithReady(true).WithServing(true).WithTerminating(false))
	for pause := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			// The next leader writes over it: this may fail.
			if err := a.inTime(context.WithoutCancel(ctx), until); err != nil {
				klog.FromContext(ctx).Info("Schedulers are sent here until another process leads", "err", err)
			}
			return
		case <-time.After(pause):
		}
		pause = a.again
		if err := a.inTime(ctx, until, here); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Schedulers may not be sent here, though this process leads")
			pause = min(announceRetry, a.again)
		}
	}
}

// inTime writes before a lease runs out, or not at all.
func (a *announcer) inTime(ctx context.Context, until func() time.Time, endpoints ...*applydiscoveryv1.EndpointApplyConfiguration) error {
	ctx, cancel := context.WithDeadline(ctx, until())
	defer cancel()
	return a.write(ctx, endpoints...)
}

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
		address: address.Unmap(), port: int32(port), again: announceAgain,
	}, nil
}
