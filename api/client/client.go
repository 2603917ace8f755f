// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// Typed has the requests for the objects of one kind (and, for namespaced kinds, one namespace). Errors
// are those of the API server, to be told apart with k8s.io/apimachinery/pkg/api/errors. Safe for
// parallel use.
type Typed[T, L any] interface {
	Create(ctx context.Context, obj T, opts metav1.CreateOptions) (T, error)
	Update(ctx context.Context, obj T, opts metav1.UpdateOptions) (T, error)
	// UpdateStatus writes the status subresource. VolumeHold has none: use Update.
	UpdateStatus(ctx context.Context, obj T, opts metav1.UpdateOptions) (T, error)
	Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error
	Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error)
	List(ctx context.Context, opts metav1.ListOptions) (L, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
	// Patch takes JSON and merge patches and server-side apply; the API server
	// answers 415 to a strategic merge patch of a custom resource.
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (T, error)
}

// The typed clients of each kind.
type (
	VolumeTicketInterface    = Typed[*v1alpha1.VolumeTicket, *v1alpha1.VolumeTicketList]
	VolumeHoldInterface      = Typed[*v1alpha1.VolumeHold, *v1alpha1.VolumeHoldList]
	AttachPolicyInterface    = Typed[*v1alpha1.AttachPolicy, *v1alpha1.AttachPolicyList]
	NodeMountReportInterface = Typed[*v1alpha1.NodeMountReport, *v1alpha1.NodeMountReportList]
)

// Interface is access to every kind of the group. Safe for parallel use.
type Interface interface {
	// VolumeTickets of a namespace, or of all with metav1.NamespaceAll.
	VolumeTickets(namespace string) VolumeTicketInterface
	VolumeHolds() VolumeHoldInterface
	AttachPolicies() AttachPolicyInterface
	NodeMountReports() NodeMountReportInterface
}

// Clientset is the Interface on a real API server.
type Clientset struct {
	rest       rest.Interface
	parameters runtime.ParameterCodec
}

var _ Interface = (*Clientset)(nil)

// NewForConfig returns a client with the address, credentials and limits of config, which it does not
// change. It talks JSON, since the API server has no other encoding for custom resources that is not a
// preview. It does not connect; the error names the fault of config.
func NewForConfig(config *rest.Config) (*Clientset, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register %s: %w", v1alpha1.SchemeGroupVersion, err)
	}
	group := v1alpha1.SchemeGroupVersion
	own := rest.CopyConfig(config)
	own.GroupVersion = &group
	own.APIPath = "/apis"
	own.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	own.ContentType = runtime.ContentTypeJSON
	own.AcceptContentTypes = runtime.ContentTypeJSON
	if own.UserAgent == "" {
		own.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	restClient, err := rest.RESTClientFor(own)
	if err != nil {
		return nil, fmt.Errorf("client for %s: %w", group, err)
	}
	return &Clientset{rest: restClient, parameters: runtime.NewParameterCodec(scheme)}, nil
}

// VolumeTickets returns the client for the tickets of a namespace.
func (c *Clientset) VolumeTickets(namespace string) VolumeTicketInterface {
	return gentype.NewClientWithList(v1alpha1.ResourceVolumeTickets, c.rest, c.parameters, namespace,
		func() *v1alpha1.VolumeTicket { return &v1alpha1.VolumeTicket{} },
		func() *v1alpha1.VolumeTicketList { return &v1alpha1.VolumeTicketList{} })
}

// VolumeHolds returns the client for holds.
func (c *Clientset) VolumeHolds() VolumeHoldInterface {
	return gentype.NewClientWithList(v1alpha1.ResourceVolumeHolds, c.rest, c.parameters, metav1.NamespaceNone,
		func() *v1alpha1.VolumeHold { return &v1alpha1.VolumeHold{} },
		func() *v1alpha1.VolumeHoldList { return &v1alpha1.VolumeHoldList{} })
}

// AttachPolicies returns the client for policies.
func (c *Clientset) AttachPolicies() AttachPolicyInterface {
	return gentype.NewClientWithList(v1alpha1.ResourceAttachPolicies, c.rest, c.parameters, metav1.NamespaceNone,
		func() *v1alpha1.AttachPolicy { return &v1alpha1.AttachPolicy{} },
		func() *v1alpha1.AttachPolicyList { return &v1alpha1.AttachPolicyList{} })
}

// NodeMountReport returns the client for NodeMountReport.
func (c *Clientset) NodeMountReports() NodeMountReportInterface {
	return gentype.NewClientWithList(v1alpha1.ResourceNodeMountReports, c.rest, c.parameters, metav1.NamespaceNone,
		func() *v1alpha1.NodeMountReport { return &v1alpha1.NodeMountReport{} },
		func() *v1alpha1.NodeMountReportList { return &v1alpha1.NodeMountReportList{} })
}
