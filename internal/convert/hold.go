// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// listed bounds a VolumeHold's lists, as its schema does.
const listed = 256

const (
	// reasonUnknown is Attached's reason for an unknown place.
	reasonUnknown = "Unknown"
	// reasonLeft: the volume may be at the holder's node without an attachment.
	reasonLeft = "LeftAttached"
	// reasonDetached: the volume has left its last node. Other reasons of Attached=False are why the driver
	// does not attach it.
	reasonDetached = "Detached"
)

// Hold makes a fact of a VolumeHold. It is HoldObject's inverse.
func Hold(h *v1alpha1.VolumeHold) ledger.HoldSeen {
	status := &h.Status
	fact := ledger.Hold{
		Version:     h.ResourceVersion,
		Transitions: min(status.Transitions, ledger.MaxTransitions),
		Grants:      status.Grants,
		PVs:         slices.Clone(status.PersistentVolumes),
		Waiting:     requesters(status.Waiting),
	}
	if fact.Transitions > 0 {
		fact.State = ledger.HoldFree
	}
	if status.Holder != nil {
		fact.Node, fact.NodeUID = orDetached(status.Holder.Node), string(status.Holder.NodeUID)
		fact.BootID, fact.SystemUUID = status.Holder.BootID, status.Holder.SystemUUID
		fact.Requesters = requesters(status.Holder.Requesters)
		fact.State = ledger.HoldHeld
	}
	if status.Next != nil {
		fact.Next = ledger.Promise{Node: orDetached(status.Next.Node), To: requesterOf(status.Next.Ticket)}
	}
	concern(&fact, status.Conditions)
	if f := status.ForceDetach; f != nil {
		fact.Force = forceOf(f)
	}
	for i := range status.Fenced {
		fact.Fences = append(fact.Fences, fenceOf(&status.Fenced[i]))
	}
	return ledger.HoldSeen{Volume: HoldVolume(h), Hold: fact}
}

func fenceOf(f *v1alpha1.FencedNode) ledger.Fence {
	fact := ledger.Fence{
		Node: ledger.NodeName(f.Node), NodeUID: string(f.NodeUID), BootID: f.BootID, SystemUUID: f.SystemUUID,
		Attachment: string(f.AttachmentUID), Rule: string(f.Rule), InUse: f.InUse, Reported: f.Reported,
	}
	fact.Since, fact.Renewed = outage(f.NotReadySince, f.LeaseRenewed)
	return fact
}

// fenced is the entry about a forced node; fenceOf's inverse.
func fenced(c HoldContext, f ledger.Fence) v1alpha1.FencedNode {
	out := v1alpha1.FencedNode{
		Node: string(f.Node), NodeUID: types.UID(f.NodeUID), BootID: f.BootID, SystemUUID: f.SystemUUID,
		AttachmentUID: types.UID(f.Attachment), Rule: v1alpha1.ForceDetachRule(f.Rule), InUse: f.InUse, Reported: f.Reported,
	}
	out.NotReadySince, out.LeaseRenewed = times(f.Since, f.Renewed)
	out.Since = fencedSince(c, &out)
	return out
}

// fencedSince, for people, keeps the value for the same Node, VolumeAttachment and rule.
func fencedSince(c HoldContext, is *v1alpha1.FencedNode) *metav1.Time {
	if c.Old != nil {
		for i := range c.Old.Status.Fenced {
			was := &c.Old.Status.Fenced[i]
			if was.Node == is.Node && was.NodeUID == is.NodeUID && was.AttachmentUID == is.AttachmentUID && was.Rule == is.Rule {
				return was.Since
			}
		}
	}
	now := metav1.NewTime(c.Now)
	return &now
}

// outage is the ledger's form of an outage's two times; 0: none.
func outage(notReady *metav1.Time, renewed *metav1.MicroTime) (since, lease int64) {
	if notReady != nil {
		since = notReady.Unix()
	}
	if renewed != nil {
		lease = renewed.UnixMicro()
	}
	return since, lease
}

func times(since, lease int64) (notReady *metav1.Time, renewed *metav1.MicroTime) {
	if since != 0 {
		notReady = &metav1.Time{Time: time.Unix(since, 0)}
	}
	if lease != 0 {
		renewed = &metav1.MicroTime{Time: time.UnixMicro(lease)}
	}
	return notReady, renewed
}

func forceOf(f *v1alpha1.ForceDetachProgress) *ledger.Force {
	fact := &ledger.Force{
		Rule: string(f.Rule), Node: ledger.NodeName(f.Node), NodeUID: string(f.NodeUID),
		Elapsed: Elapsed(f.ElapsedSeconds),
	}
	fact.Since, fact.Renewed = outage(f.NotReadySince, f.LeaseRenewed)
	return fact
}

// mostElapsed bounds an object's counted time. A sum of two does not overflow.
const mostElapsed = 100 * 365 * 24 * time.Hour

// Elapsed returns an object's seconds, at most mostElapsed: the number may have been edited.
func Elapsed(seconds int64) time.Duration {
	return time.Duration(min(seconds, int64(mostElapsed/time.Second))) * time.Second
}

// progress is the entry about a rule's time; forceOf's inverse.
func progress(f *ledger.Force) *v1alpha1.ForceDetachProgress {
	out := &v1alpha1.ForceDetachProgress{
		Rule: v1alpha1.ForceDetachRule(f.Rule), Node: string(f.Node), NodeUID: types.UID(f.NodeUID),
		ElapsedSeconds: int64(f.Elapsed / time.Second),
	}
	out.NotReadySince, out.LeaseRenewed = times(f.Since, f.Renewed)
	return out
}

func concern(fact *ledger.Hold, list []metav1.Condition) {
	if c := meta.FindStatusCondition(list, v1alpha1.HoldDetachPending); c != nil {
		fact.Reason, fact.Message = ledger.Code(c.Reason), c.Message
		if c.Status == metav1.ConditionTrue {
			fact.State = ledger.HoldDetachPending
		}
	}
	c := meta.FindStatusCondition(list, v1alpha1.HoldAttached)
	switch {
	case c == nil:
	case c.Status == metav1.ConditionFalse && c.Reason != reasonDetached:
		fact.State, fact.Reason, fact.Message = ledger.HoldAttachFailed, ledger.Code(c.Reason), c.Message
	case c.Status == metav1.ConditionUnknown:
		fact.Stays = c.Reason == reasonLeft
		switch {
		case fact.Stays && fact.State == ledger.HoldDetachPending:
		case c.Reason == reasonUnknown, fact.Stays:
			fact.State, fact.Message = ledger.HoldUnknown, c.Message
		default:
			fact.State, fact.Reason, fact.Message = ledger.HoldUnknown, ledger.Code(c.Reason), c.Message
		}
	}
}

// HoldVolume is a VolumeHold's volume.
func HoldVolume(h *v1alpha1.VolumeHold) ledger.VolumeID {
	v, _ := volumeID(h.Spec.Driver, h.Spec.Handle) // zero: the hold names nothing
	return v
}

// HoldContext is HoldObject's other input.
type HoldContext struct {
	Volume ledger.VolumeID
	Claim  ledger.ClaimKey      // for people; zero: none
	Old    *v1alpha1.VolumeHold // the last known, for its conditions' times; may be nil
	Now    time.Time
}

// HoldObject makes a hold's VolumeHold, with its resource version: it replaces exactly the hold's origin.
func HoldObject(c HoldContext, h ledger.Hold) *v1alpha1.VolumeHold {
	object := &v1alpha1.VolumeHold{
		ObjectMeta: metav1.ObjectMeta{
			Name:            v1alpha1.VolumeHoldName(c.Volume.Driver, c.Volume.Handle),
			ResourceVersion: h.Version,
			Labels:          map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy},
		},
		Spec: v1alpha1.VolumeHoldSpec{Driver: c.Volume.Driver, Handle: c.Volume.Handle},
		Status: v1alpha1.VolumeHoldStatus{
			PersistentVolumes: bounded(h.PVs),
			Transitions:       h.Transitions,
			Grants:            h.Grants,
			Waiting:           references(h.Waiting),
			Summary:           summary(c, h),
		},
	}
	status := &object.Status
	if h.Node != "" {
		status.Holder = &v1alpha1.Holder{Node: orNone(h.Node), NodeUID: types.UID(h.NodeUID), BootID: h.BootID, SystemUUID: h.SystemUUID, Requesters: references(h.Requesters)}
	}
	if h.Next.Node != "" && named(h.Next.To) {
		status.Next = &v1alpha1.NextHolder{Node: orNone(h.Next.Node), Ticket: reference(h.Next.To)}
	}
	if h.Force != nil {
		status.ForceDetach = progress(h.Force)
	}
	for _, f := range bounded(h.Fences) {
		status.Fenced = append(status.Fenced, fenced(c, f))
	}
	conditions(c, h, status)
	return object
}

// conditions sets the state's conditions, keeps existing times, and drops other conditions.
func conditions(c HoldContext, h ledger.Hold, status *v1alpha1.VolumeHoldStatus) {
	// A VolumeHold has no status subresource: this write makes the conditions' generation.
	var old []metav1.Condition
	generation := int64(1)
	if c.Old != nil {
		old, generation = c.Old.Status.Conditions, c.Old.Generation+1
	}
	set := func(kind string, is metav1.ConditionStatus, reason string) {
		condition := metav1.Condition{
			Type: kind, Status: is, Reason: reason, Message: h.Message,
			LastTransitionTime: metav1.NewTime(c.Now), ObservedGeneration: generation,
		}
		if before := meta.FindStatusCondition(old, kind); before != nil && before.Status == is {
			condition.LastTransitionTime = before.LastTransitionTime
		}
		status.Conditions = append(status.Conditions, condition)
	}
	reason := cmp.Or(string(h.Reason), reasonUnknown)
	if h.Stays {
		set(v1alpha1.HoldAttached, metav1.ConditionUnknown, reasonLeft)
	}
	switch h.State {
	case ledger.HoldFree:
		set(v1alpha1.HoldAttached, metav1.ConditionFalse, reasonDetached)
	case ledger.HoldAttachFailed:
		set(v1alpha1.HoldAttached, metav1.ConditionFalse, reason)
	case ledger.HoldUnknown:
		if !h.Stays {
			set(v1alpha1.HoldAttached, metav1.ConditionUnknown, reason)
		}
	case ledger.HoldHeld:
		if h.Reason != "" {
			set(v1alpha1.HoldDetachPending, metav1.ConditionFalse, reason)
		}
	case ledger.HoldDetachPending:
		set(v1alpha1.HoldDetachPending, metav1.ConditionTrue, reason)
		set(v1alpha1.HoldSafeToDetach, safeToDetach(h.Reason), reason)
	}
}

// safeToDetach: a detach that the driver refuses, or does not answer, had been proved safe.
func safeToDetach(reason ledger.Code) metav1.ConditionStatus {
	if rules.CallOf(reason) == rules.CallDetach {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// orDetached: an absent name is no node.
func orDetached(n string) ledger.NodeName {
	if n == "" {
		return ledger.Detached
	}
	return ledger.NodeName(n)
}

// orNone is orDetached's inverse.
func orNone(n ledger.NodeName) string {
	if n == ledger.Detached {
		return ""
	}
	return string(n)
}

func requesterOf(r v1alpha1.TicketReference) ledger.Requester {
	return ledger.Requester{
		Ticket: r.Kind == v1alpha1.TicketKindVolumeTicket, Namespace: r.Namespace, Name: r.Name, UID: string(r.UID),
	}
}

func requesters(refs []v1alpha1.TicketReference) []ledger.Requester {
	var list []ledger.Requester
	for _, r := range refs {
		list = append(list, requesterOf(r))
	}
	return list
}

func reference(r ledger.Requester) v1alpha1.TicketReference {
	kind := v1alpha1.TicketKindPod
	if r.Ticket {
		kind = v1alpha1.TicketKindVolumeTicket
	}
	return v1alpha1.TicketReference{Kind: kind, Namespace: r.Namespace, Name: r.Name, UID: types.UID(r.UID)}
}

// named says whether a requester can be written: the API takes no other.
func named(r ledger.Requester) bool { return r.Namespace != "" && r.Name != "" && r.UID != "" }

func references(list []ledger.Requester) []v1alpha1.TicketReference {
	var refs []v1alpha1.TicketReference
	for _, r := range bounded(list) {
		if named(r) {
			refs = append(refs, reference(r))
		}
	}
	return refs
}

func bounded[T any](list []T) []T { return slices.Clip(list[:min(len(list), listed)]) }
