// SPDX-License-Identifier: Apache-2.0

package volumestatus

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// state is where a pod's volumes are.
type state struct {
	status   v1alpha1.VolumeStatus
	safe     bool             // every volume is safe to mount
	released bool             // every volume is safe to detach
	reasons  []arbiter.Reason // why one is not safe to mount
	waits    []wait           // the first reason of each that is not
}

// wait is a volume that is not safe to mount, by its name in the pod.
type wait struct {
	name   string
	reason arbiter.Reason
	claim  *ledger.Claim // nil when it has none
	held   ledger.Code   // what its VolumeHold says it waits for
}

// lasts says whether a reason is worth telling at once.
func (s state) lasts() bool {
	for _, r := range s.reasons {
		if !arbiter.Transient(r.Code) {
			return true
		}
	}
	return false
}

// first is the reason to tell in one line: one that lasts, if there is one.
func (s state) first() arbiter.Reason {
	for _, r := range s.reasons {
		if !arbiter.Transient(r.Code) {
			return r
		}
	}
	if len(s.reasons) == 0 {
		return arbiter.Reason{}
	}
	return s.reasons[0]
}

// stateOf tells where a pod's volumes are, for the node that it is bound to.
func stateOf(a arbiter.Arbiter, s ledger.Snapshot, p *ledger.Pod, now time.Time) state {
	node := p.Node
	st := state{safe: true, released: p.Phase == ledger.PodFinished}
	st.status.UID = types.UID(p.UID)
	for _, v := range p.Volumes {
		id, link := s.ResolvePod(p, v)
		entry := v1alpha1.PodVolumeStatus{Name: v.Name, Claim: v.Claim}
		need := arbiter.Need{Name: v.Name, Volume: id, Link: link}
		if v.Claim != "" {
			need.Name = v.Claim
			need.Claim = s.Claim(ledger.ClaimKey{Namespace: p.Namespace, Name: v.Claim})
		}
		if need.Claim != nil {
			entry.PersistentVolume = need.Claim.PersistentVolume
		}
		if link.NeedsNone() || link == ledger.LinkVolume && !s.AttachRequired(id.Driver) {
			entry.SafeToMount = true // nothing has to be attached
			st.status.Volumes = append(st.status.Volumes, entry)
			continue
		}
		entry.Node = string(node)
		volume := s.Volume(id)
		if volume != nil && volume.Hold != nil {
			entry.Transitions = volume.Hold.Transitions
		}
		verdict := a.Explain(s, need, node, now).SeenFrom(p.Namespace)
		entry.SafeToMount = verdict.Allowed() && p.Phase != ledger.PodFinished
		entry.SafeToDetach = p.Phase == ledger.PodFinished && !inUse(volume, node)
		if !verdict.Allowed() && p.Phase != ledger.PodFinished {
			entry.Reason, entry.Message = string(verdict.First().Code), verdict.First().Message()
			st.reasons = append(st.reasons, verdict.Reasons...)
			w := wait{name: v.Name, reason: verdict.First(), claim: need.Claim}
			if volume != nil && volume.Hold != nil && volume.Hold.State != ledger.HoldAttachFailed { // of that it makes no event
				w.held = volume.Hold.Reason
			}
			st.waits = append(st.waits, w)
		}
		st.safe = st.safe && entry.SafeToMount
		st.released = st.released && entry.SafeToDetach
		st.status.Volumes = append(st.status.Volumes, entry)
	}
	return st
}

func inUse(v *ledger.Volume, n ledger.NodeName) bool {
	place := v.NodeVolume(n)
	return place != nil && place.InUse
}
