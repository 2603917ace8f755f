// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"errors"
	"sync/atomic"
	"testing"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/gentype"
	clienttesting "k8s.io/client-go/testing"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/api/v1alpha1"
)

type moorage struct {
	*clienttesting.Fake
	tracker clienttesting.ObjectTracker
	groups  *dynamicfake.FakeDynamicClient // has the PodGroups of sigs.k8s.io/scheduler-plugins
	watches atomic.Int64
}

func newMoorage(t *testing.T) *moorage {
	t.Helper()
	scheme := apiruntime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	m := &moorage{Fake: &clienttesting.Fake{}, groups: podGroups()}
	m.tracker = clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder())
	m.AddReactor("*", "*", func(action clienttesting.Action) (bool, apiruntime.Object, error) {
		switch action.GetVerb() {
		case "get", "list", "watch":
			return false, nil, nil
		}
		t.Errorf("the scheduler writes an object of Moorage's: %v", action)
		return true, nil, errors.New("nobody may write this")
	})
	m.AddReactor("*", "*", clienttesting.ObjectReaction(m.tracker))
	m.AddWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		opened, err := m.tracker.Watch(action.GetResource(), action.GetNamespace())
		m.watches.Add(1)
		return true, opened, err
	})
	return m
}

// The fake's tracker sends no bookmark: typed lists first, then watches.
type typed[T, L any] struct{ client.Typed[T, L] }

func (typed[T, L]) IsWatchListSemanticsUnSupported() bool { return true }

func (m *moorage) VolumeTickets(namespace string) client.VolumeTicketInterface {
	return typed[*v1alpha1.VolumeTicket, *v1alpha1.VolumeTicketList]{gentype.NewFakeClientWithList(m.Fake, namespace,
		v1alpha1.SchemeGroupVersion.WithResource(v1alpha1.ResourceVolumeTickets), v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindVolumeTicket),
		func() *v1alpha1.VolumeTicket { return &v1alpha1.VolumeTicket{} },
		func() *v1alpha1.VolumeTicketList { return &v1alpha1.VolumeTicketList{} },
		func(to, from *v1alpha1.VolumeTicketList) { to.ListMeta = from.ListMeta },
		func(l *v1alpha1.VolumeTicketList) []*v1alpha1.VolumeTicket { return gentype.ToPointerSlice(l.Items) },
		func(l *v1alpha1.VolumeTicketList, items []*v1alpha1.VolumeTicket) {
			l.Items = gentype.FromPointerSlice(items)
		})}
}

func (m *moorage) VolumeHolds() client.VolumeHoldInterface {
	return typed[*v1alpha1.VolumeHold, *v1alpha1.VolumeHoldList]{gentype.NewFakeClientWithList(m.Fake, "",
		v1alpha1.SchemeGroupVersion.WithResource(v1alpha1.ResourceVolumeHolds), v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindVolumeHold),
		func() *v1alpha1.VolumeHold { return &v1alpha1.VolumeHold{} },
		func() *v1alpha1.VolumeHoldList { return &v1alpha1.VolumeHoldList{} },
		func(to, from *v1alpha1.VolumeHoldList) { to.ListMeta = from.ListMeta },
		func(l *v1alpha1.VolumeHoldList) []*v1alpha1.VolumeHold { return gentype.ToPointerSlice(l.Items) },
		func(l *v1alpha1.VolumeHoldList, items []*v1alpha1.VolumeHold) {
			l.Items = gentype.FromPointerSlice(items)
		})}
}

func (m *moorage) NodeMountReports() client.NodeMountReportInterface {
	panic("the scheduler knows nothing of what nodes say")
}

func (m *moorage) AttachPolicies() client.AttachPolicyInterface {
	return typed[*v1alpha1.AttachPolicy, *v1alpha1.AttachPolicyList]{gentype.NewFakeClientWithList(m.Fake, "",
		v1alpha1.SchemeGroupVersion.WithResource(v1alpha1.ResourceAttachPolicies), v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindAttachPolicy),
		func() *v1alpha1.AttachPolicy { return &v1alpha1.AttachPolicy{} },
		func() *v1alpha1.AttachPolicyList { return &v1alpha1.AttachPolicyList{} },
		func(to, from *v1alpha1.AttachPolicyList) { to.ListMeta = from.ListMeta },
		func(l *v1alpha1.AttachPolicyList) []*v1alpha1.AttachPolicy { return gentype.ToPointerSlice(l.Items) },
		func(l *v1alpha1.AttachPolicyList, items []*v1alpha1.AttachPolicy) {
			l.Items = gentype.FromPointerSlice(items)
		})}
}
