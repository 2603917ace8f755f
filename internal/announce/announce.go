// SPDX-License-Identifier: Apache-2.0

// Package announce tells a Service which process leads, by its EndpointSlice.
package announce

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
)

// Pauses after a failed and a successful announcement; foreign changes are put right.
const (
	announceRetry = time.Second
	announceAgain = 10 * time.Second
)

// Announcer points a Service without a selector at the leader. Standby processes can be ready, with warm
// caches, and get no requests. Serial.
type Announcer struct {
	config  Config
	address netip.Addr
	port    int32
	again   time.Duration
}

// Config is an Announcer's configuration.
type Config struct {
	Kube kubernetes.Interface
	// Name is the EndpointSlice's writer: the component.
	Name string
	// Namespace and Service name the Service.
	Namespace, Service string
	// Address is this process's IP address for others, Listen its host:port.
	Address, Listen string
}

// New returns an Announcer; nil: no Service is named. Its error names the extender's flag.
func New(config Config) (*Announcer, error) {
	if config.Service == "" {
		return nil, nil
	}
	address, err := netip.ParseAddr(config.Address)
	if err != nil || address.IsUnspecified() {
		return nil, fmt.Errorf("--extender-advertise-address=%s must be the IP address at which schedulers reach this process", config.Address)
	}
	_, at, err := net.SplitHostPort(config.Listen)
	if err != nil {
		return nil, fmt.Errorf("--extender-listen: %w", err)
	}
	port, err := strconv.ParseUint(at, 10, 16)
	if err != nil || port == 0 {
		return nil, fmt.Errorf("a Service needs a port in --extender-listen=%s that schedulers can be sent to", config.Listen)
	}
	return &Announcer{config: config, address: address.Unmap(), port: int32(port), again: announceAgain}, nil
}

const servicePort = "https"

// family is the address' kind and the EndpointSlice's name, whose kind never changes.
func (a *Announcer) family() (discoveryv1.AddressType, string) {
	if a.address.Is4() {
		return discoveryv1.AddressTypeIPv4, a.config.Service
	}
	return discoveryv1.AddressTypeIPv6, a.config.Service + "-ipv6"
}

// Lead points the Service here until ctx is done, then at no process. It writes nothing after until, the
// lease's end.
func (a *Announcer) Lead(ctx context.Context, until func() time.Time) {
	here := applydiscoveryv1.Endpoint().WithAddresses(a.address.String()).
		WithConditions(applydiscoveryv1.EndpointConditions().WithReady(true).WithServing(true).WithTerminating(false))
	for pause := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			// This may fail: the next leader writes over it.
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

// inTime writes before the lease runs out, or not at all.
func (a *Announcer) inTime(ctx context.Context, until func() time.Time, endpoints ...*applydiscoveryv1.EndpointApplyConfiguration) error {
	ctx, cancel := context.WithDeadline(ctx, until())
	defer cancel()
	return a.write(ctx, endpoints...)
}

// write's EndpointSlice belongs to the Service, and goes with it.
func (a *Announcer) write(ctx context.Context, endpoints ...*applydiscoveryv1.EndpointApplyConfiguration) error {
	service, err := a.config.Kube.CoreV1().Services(a.config.Namespace).Get(ctx, a.config.Service, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("whose endpoint to be: --extender-service=%s: %w", a.config.Service, err)
	}
	if len(service.Spec.Selector) > 0 {
		return fmt.Errorf("the Service %s has a selector, by which others are asked, too: take it away, or leave out --extender-service", a.config.Service)
	}
	family, name := a.family()
	slice := applydiscoveryv1.EndpointSlice(name, a.config.Namespace).
		WithLabels(map[string]string{discoveryv1.LabelServiceName: a.config.Service, discoveryv1.LabelManagedBy: a.config.Name}).
		WithOwnerReferences(applymetav1.OwnerReference().WithAPIVersion("v1").WithKind("Service").WithName(service.Name).WithUID(service.UID)).
		WithAddressType(family).
		WithPorts(applydiscoveryv1.EndpointPort().WithName(servicePort).WithPort(a.port).WithProtocol(corev1.ProtocolTCP)).
		WithEndpoints(endpoints...)
	// A former leader's content is overwritten.
	_, err = a.config.Kube.DiscoveryV1().EndpointSlices(a.config.Namespace).Apply(ctx, slice, metav1.ApplyOptions{FieldManager: a.config.Name, Force: true})
	if err != nil {
		return fmt.Errorf("write EndpointSlice %s: %w", name, err)
	}
	return nil
}
