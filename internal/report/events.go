// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// The reasons of events. For attaches they are the attach/detach controller's, known to people and tools.
const (
	eventFailedAttach  = "FailedAttachVolume"
	eventAttached      = "SuccessfulAttachVolume"
	eventVolumeWaits   = "VolumeWait"
	eventForcedDetach  = "ForcedDetach"
	eventTicketEnded   = "TicketEnded"
	eventYielding      = "Yielding"
	eventVolumesReady  = "VolumesReady"
	eventResolved      = "Resolved"
	eventFlexVolume    = "FlexVolumeNotAttached"
	eventNetworkFence  = "NetworkFence"
	eventFenceHeld     = "NetworkFenceHeld"
	eventOperation     = "OperationTicket"
	eventOperationHeld = "OperationHeld"
)

// Events writes events, and logs each with the same reason code. Its methods are safe for parallel use, and
// do nothing on nil.
type Events struct {
	recorder record.EventRecorder
	writes   typedcorev1.EventInterface // of Nodes; nil: all go to the recorder
	log      klog.Logger
	quotas   quotas // of events about tickets and refused writes
	now      func() time.Time
}

// NewEvents returns events that are written in the background until ctx is done; repeated ones are counted
// up.
func NewEvents(ctx context.Context, kube kubernetes.Interface) *Events {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: kube.CoreV1().Events("")})
	e := NewEventsIn(ctx, broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: v1alpha1.ControllerName}))
	e.writes = kube.CoreV1().Events(metav1.NamespaceDefault)
	return e
}

// NewEventsWith returns events for a recorder.
func NewEventsWith(recorder record.EventRecorder) *Events {
	return NewEventsIn(context.Background(), recorder)
}

// NewEventsIn returns events for a recorder and the context's logger.
func NewEventsIn(ctx context.Context, recorder record.EventRecorder) *Events {
	return &Events{recorder: recorder, log: klog.FromContext(ctx), quotas: newQuotas(), now: time.Now}
}

// Waits tells a pod, and claim unless nil, the lasting reason why a volume is not there.
func (e *Events) Waits(pod *ledger.Pod, claim *ledger.Claim, reason rules.Reason) {
	if e == nil {
		return
	}
	e.log.Info("A pod waits for a volume", append(fields(reason), "pod", klog.KRef(pod.Namespace, pod.Name))...)
	name := eventVolumeWaits
	if reason.Code == rules.AttachFailed || reason.Code == rules.HeldElsewhere {
		name = eventFailedAttach // as the attach/detach controller does
	}
	e.warn(OfPod(pod), name, fmt.Sprintf("%s: %s", reason.Code, reason.Message()))
	if claim != nil {
		e.warn(OfClaim(claim), name, fmt.Sprintf("pod %s waits: %s: %s", pod.Name, reason.Code, reason.Message()))
	}
}

// Ready reports that all volumes of a pod are there: on a pod with an event for its wait, and on the
// awaited claims.
func (e *Events) Ready(pod *ledger.Pod, node ledger.NodeName, claims []*ledger.Claim) {
	if e == nil {
		return
	}
	e.log.Info("A pod's volumes are safe to mount", "reason", eventVolumesReady, "pod", klog.KRef(pod.Namespace, pod.Name), "node", node)
	e.tell(OfPod(pod), eventVolumesReady, fmt.Sprintf("every volume is attached to %s, and its node status says so", node))
	for _, claim := range claims {
		e.tellClaim(claim, eventVolumesReady, fmt.Sprintf("pod %s has it at %s", pod.Name, node))
	}
}

// Attached tells a pod of an attached PersistentVolume in the attach/detach controller's words
// (pkg/volume/util/operationexecutor).
func (e *Events) Attached(pod *ledger.Pod, volume string) {
	if e == nil {
		return
	}
	e.log.V(1).Info("A volume is attached", "reason", eventAttached, "pod", klog.KRef(pod.Namespace, pod.Name), "volume", volume)
	e.tell(OfPod(pod), eventAttached, fmt.Sprintf("AttachVolume.Attach succeeded for volume %q ", volume))
}

// AttachRefused tells a pod that the API server refuses a write for the attach of a PersistentVolume,
// quoted within the namespace's quota.
func (e *Events) AttachRefused(pod *ledger.Pod, volume string, node ledger.NodeName, why string) {
	if e != nil && e.quotas.refused.take(pod.Namespace, e.now()) {
		e.warn(OfPod(pod), eventFailedAttach, fmt.Sprintf("volume %q is not attached to %s, since the API server refuses a write that is tried again: %s", volume, node, why))
	}
}

// NetworkFence reports on a node its state at a driver's storage.
func (e *Events) NetworkFence(node ledger.NodeName, driver, text string) {
	if e != nil {
		e.log.Info("A NetworkFence goes on", "reason", eventNetworkFence, "node", node, "driver", driver, "what", text)
		e.warn(OfNode(node), eventNetworkFence, fmt.Sprintf("driver %s: %s", driver, text))
	}
}

// NetworkFenceHeld tells a node why it is not cut off from a driver's storage as it should be, or
// not let in again.
func (e *Events) NetworkFenceHeld(node ledger.NodeName, driver, why string) {
	if e != nil {
		e.log.Info("A NetworkFence waits", "reason", eventFenceHeld, "node", node, "driver", driver, "why", why)
		e.warn(OfNode(node), eventFenceHeld, fmt.Sprintf("driver %s: %s", driver, why))
	}
}

// OperationTicket reports an operation's ticket on the asking object, within its namespace's quota.
func (e *Events) OperationTicket(of Object, text string) {
	if e != nil && e.quotas.operations.take(of.Namespace, e.now()) {
		e.log.V(1).Info("An operation has a ticket", "reason", eventOperation, "kind", of.Kind, "object", klog.KRef(of.Namespace, of.Name), "what", text)
		e.tell(of, eventOperation, text)
	}
}

// OperationHeld reports on the asking object why it has no ticket, or a waiting one. False: beyond the
// namespace's quota; report it later.
func (e *Events) OperationHeld(of Object, code, text string) bool {
	if e == nil {
		return true
	}
	if !e.quotas.operations.take(of.Namespace, e.now()) {
		return false
	}
	e.log.Info("An operation waits for its ticket", "reason", eventOperationHeld, "kind", of.Kind, "object", klog.KRef(of.Namespace, of.Name), "code", code)
	e.warn(of, eventOperationHeld, code+": "+text)
	return true
}

const flexVolume = "is a FlexVolume, which only kube-controller-manager can attach where its driver does that: " +
	"move it to CSI, or leave it so where the driver only mounts"

// FlexVolumeOfPod reports on a pod that no controller attaches its own FlexVolume.
func (e *Events) FlexVolumeOfPod(pod *ledger.Pod) {
	if e != nil {
		e.log.Info("A pod has a FlexVolume, which is not attached", "reason", eventFlexVolume, "pod", klog.KRef(pod.Namespace, pod.Name))
		e.warn(OfPod(pod), eventFlexVolume, "a volume of the pod "+flexVolume)
	}
}

// FlexVolume reports on a PersistentVolume that no controller attaches it.
func (e *Events) FlexVolume(name string, uid types.UID) {
	if e != nil {
		e.log.Error(nil, "A PersistentVolume is a FlexVolume, which is not attached", "reason", eventFlexVolume, "persistentVolume", name)
		e.warn(Object{APIVersion: "v1", Kind: "PersistentVolume", Name: name, UID: string(uid)}, eventFlexVolume, "it "+flexVolume)
	}
}

// fields omits the message, which quotes drivers and names people's pods.
func fields(reason rules.Reason) []any {
	list := []any{"reason", reason.Code}
	if !reason.Volume.IsZero() {
		list = append(list, "volume", reason.Volume.String())
	}
	if reason.Node != "" {
		list = append(list, "node", reason.Node)
	}
	return list
}

func (e *Events) tellClaim(claim *ledger.Claim, reason, message string) {
	if claim != nil {
		e.tell(OfClaim(claim), reason, message)
	}
}

func (e *Events) tell(at Object, reason, message string) {
	e.recorder.Event(at.reference(), corev1.EventTypeNormal, reason, message)
}

func (e *Events) warn(at Object, reason, message string) {
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "")
	}
	e.recorder.Event(at.reference(), corev1.EventTypeWarning, reason, message)
}

// maxMessage is that of a note of events.k8s.io: a message may quote a webhook.
const maxMessage = 1024
