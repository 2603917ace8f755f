// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/gentype"
	clienttesting "k8s.io/client-go/testing"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// moorage is Moorage's own part of the fake API. verdict is the controller: it
// decides on each ticket as soon as it is there.
type moorage struct {
	*clienttesting.Fake
	tracker clienttesting.ObjectTracker
	groups  *dynamicfake.FakeDynamicClient // has the PodGroups of sigs.k8s.io/scheduler-plugins
	version atomic.Int64
	watches atomic.Int64
	deaf    atomic.Bool // no ticket is deleted

	mu      sync.Mutex
	verdict func(*v1alpha1.VolumeTicket) (metav1.ConditionStatus, string)
}

func newMoorage(t *testing.T) *moorage {
	t.Helper()
	scheme := apiruntime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	m := &moorage{Fake: &clienttesting.Fake{}, groups: podGroups()}
	m.tracker = clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder())
	m.decide(func(*v1alpha1.VolumeTicket) (metav1.ConditionStatus, string) { return metav1.ConditionTrue, "" })
	m.AddReactor("create", v1alpha1.ResourceVolumeTickets, m.created)
	m.AddReactor("delete", v1alpha1.ResourceVolumeTickets, m.deleted)
	m.AddReactor("*", "*", clienttesting.ObjectReaction(m.tracker))
	m.AddWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		opened, err := m.tracker.Watch(action.GetResource(), action.GetNamespace())
		m.watches.Add(1)
		return true, opened, err
	})
	return m
}

// decide sets the controller's verdict; ConditionUnknown for none.
func (m *moorage) decide(verdict func(*v1alpha1.VolumeTicket) (metav1.ConditionStatus, string)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.verdict = verdict
}

// created gives a new ticket what an API server gives it, and decides on it in
// a second write.
func (m *moorage) created(action clienttesting.Action) (bool, apiruntime.Object, error) {
	ticket, ok := action.(clienttesting.CreateAction).GetObject().(*v1alpha1.VolumeTicket)
	if !ok {
		return false, nil, nil
	}
	ticket = ticket.DeepCopy()
	version := m.version.Add(1)
	ticket.UID, ticket.ResourceVersion = types.UID("ticket-"+strconv.FormatInt(version, 10)), strconv.FormatInt(version, 10)
	resource := v1alpha1.SchemeGroupVersion.WithResource(v1alpha1.ResourceVolumeTickets)
	if err := m.tracker.Create(resource, ticket, ticket.Namespace); err != nil {
		return true, nil, err
	}
	m.mu.Lock()
	status, message := m.verdict(ticket)
	m.mu.Unlock()
	if status == metav1.ConditionUnknown {
		return true, ticket, nil
	}
	decided := ticket.DeepCopy()
	decided.ResourceVersion = strconv.FormatInt(m.version.Add(1), 10)
	decided.Status.Conditions = []metav1.Condition{{Type: v1alpha1.TicketGranted, Status: status, Reason: "Test", Message: message}}
	return true, ticket, m.tracker.Update(resource, decided, ticket.Namespace)
}

// deleted heeds the UID that a deletion names, as an API server does.
func (m *moorage) deleted(action clienttesting.Action) (bool, apiruntime.Object, error) {
	if m.deaf.Load() {
		return true, nil, errors.New("the API server is away")
	}
	deletion, ok := action.(clienttesting.DeleteActionImpl)
	if !ok || deletion.DeleteOptions.Preconditions == nil {
		return false, nil, nil
	}
	found, err := m.tracker.Get(action.GetResource(), deletion.GetNamespace(), deletion.GetName())
	if err != nil {
		return true, nil, err
	}
	if ticket, ok := found.(*v1alpha1.VolumeTicket); ok && *deletion.DeleteOptions.Preconditions.UID != ticket.UID {
		return true, nil, apierrors.NewConflict(action.GetResource().GroupResource(), ticket.Name, errors.New("it has another UID"))
	}
	return false, nil, nil
}

// ticket returns the reservation of a pod.
func (m *moorage) ticket(pod *corev1.Pod) (*v1alpha1.VolumeTicket, bool) {
	found, err := m.tracker.Get(v1alpha1.SchemeGroupVersion.WithResource(v1alpha1.ResourceVolumeTickets), pod.Namespace, string(pod.UID))
	if err != nil {
		return nil, false
	}
	ticket, ok := found.(*v1alpha1.VolumeTicket)
	return ticket, ok
}

// end deletes a ticket.
func (m *moorage) end(t *v1alpha1.VolumeTicket) error {
	return m.tracker.Delete(v1alpha1.SchemeGroupVersion.WithResource(v1alpha1.ResourceVolumeTickets), t.Namespace, t.Name)
}

// typed is a client of the fake that has it listed first, then watched: the
// tracker sends no bookmark.
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

func (m *moorage) NodeVolumes() client.NodeVolumesInterface {
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
