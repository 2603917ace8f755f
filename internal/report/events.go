// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// The reasons of events. Those of a failed attach are the attach/detach
// controller's, which people and tools know.
const (
	eventFailedAttach  = "FailedAttachVolume"
	eventVolumeWaits   = "VolumeWait"
	eventForcedDetach  = "ForcedDetach"
	eventTicketRefused = "TicketRefused"
)

// Events writes events. All methods are safe for parallel use, and do nothing
// on nil.
type Events struct{ recorder record.EventRecorder }

// NewEvents returns events that are written in the background until ctx is
// done; repeated ones are counted up, not written anew.
func NewEvents(ctx context.Context, kube kubernetes.Interface) *Events {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: kube.CoreV1().Events("")})
	return NewEventsWith(broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: v1alpha1.ControllerName}))
}

// NewEventsWith returns events that go to a recorder.
func NewEventsWith(recorder record.EventRecorder) *Events { return &Events{recorder} }

// Waits tells a pod why its volumes are not there, when the reason lasts.
func (e *Events) Waits(pod *ledger.Pod, reason arbiter.Reason) {
	name := eventVolumeWaits
	if reason.Code == arbiter.AttachFailed {
		name = eventFailedAttach
	}
	e.pod(pod.Namespace, pod.Name, pod.UID, name, fmt.Sprintf("%s: %s", reason.Code, reason.Message()))
}

// Refused tells a pod that a node was refused to its reservation.
func (e *Events) Refused(t *ledger.Ticket, reason arbiter.Reason) {
	if t.Type == ledger.TypePod && t.PodName != "" {
		e.pod(t.ID.Namespace, t.PodName, t.Pod, eventTicketRefused, fmt.Sprintf("node %s: %s", t.Node, reason.Message()))
	}
}

// ForcedDetach tells the node that a volume left it without its kubelet's
// word.
func (e *Events) ForcedDetach(node ledger.NodeName, v ledger.VolumeID, rule string) {
	if e == nil {
		return
	}
	e.recorder.Event(&corev1.ObjectReference{Kind: "Node", Name: string(node), UID: types.UID(node)},
		corev1.EventTypeWarning, eventForcedDetach,
		fmt.Sprintf("volume %s was detached without the kubelet's word that it is not in use, by rule %s", v, rule))
}

func (e *Events) pod(namespace, name, uid, reason, message string) {
	if e == nil {
		return
	}
	e.recorder.Event(&corev1.ObjectReference{
		Kind: "Pod", APIVersion: "v1", Namespace: namespace, Name: name, UID: types.UID(uid),
	}, corev1.EventTypeWarning, reason, message)
}
