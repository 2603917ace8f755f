// SPDX-License-Identifier: Apache-2.0

package volumestatus

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

type state struct {
	status   v1alpha1.VolumeStatus
	finished bool              // all containers have ended
	safe     bool              // every volume is safe to mount
	broken   bool              // a volume called safe to mount no longer is
	letGo    bool              // the kubelet has let go of a finished pod's volume
	held     []ledger.VolumeID // a finished pod's volumes still at its kubelet
	reasons  []rules.Reason    // why a volume is not safe to mount
	waits    []wait            // the first reason of each such volume
}

// wait is an unsafe volume, by its name in the pod.
type wait struct {
	name   string
	reason rules.Reason
	claim  *ledger.Claim // nil: none
	held   ledger.Code   // why its VolumeHold waits
}

func (s state) released() bool { return s.finished && len(s.held) == 0 }

func (s state) lasts() bool {
	for _, r := range s.reasons {
		if !rules.Transient(r.Code) {
			return true
		}
	}
	return false
}

func (s state) first() rules.Reason {
	for _, r := range s.reasons {
		if !rules.Transient(r.Code) {
			return r
		}
	}
	if len(s.reasons) == 0 {
		return rules.Reason{}
	}
	return s.reasons[0]
}

// stateOf is at the pod's node. said is the pod's present status.
func stateOf(a rules.Arbiter, s ledger.Snapshot, p *ledger.Pod, said v1alpha1.VolumeStatus, now time.Time) state {
	node := p.Node
	st := state{safe: true, finished: p.Phase == ledger.PodFinished}
	st.status.UID = types.UID(p.UID)
	for _, v := range p.Volumes {
		id, link := s.ResolvePod(p, v)
		entry := v1alpha1.PodVolumeStatus{Name: v.Name, Claim: v.Claim}
		need := rules.Need{Name: v.Name, Volume: id, Link: link}
		if v.Claim != "" {
			need.Name = v.Claim
			need.Claim = s.Claim(ledger.ClaimKey{Namespace: p.Namespace, Name: v.Claim})
		}
		if need.Claim != nil {
			entry.PersistentVolume = need.Claim.PersistentVolume
		}
		if link.NeedsNone() || link == ledger.LinkVolume && !s.AttachRequired(id.Driver) {
			entry.SafeToMount = true // it needs no attachment
			st.status.Volumes = append(st.status.Volumes, entry)
			continue
		}
		entry.Node = string(node)
		volume := s.Volume(id)
		entry.Transitions = volume.Record().Transitions
		verdict := a.Explain(s, need, node, now).SeenFrom(p.Namespace)
		before := saidOf(said, v.Name)
		entry.SafeToMount = verdict.Allowed() && !st.finished
		if st.finished {
			st.end(&entry, before, a, s, id, node, now)
		}
		if !verdict.Allowed() && !st.finished {
			entry.Reason, entry.Message = string(verdict.First().Code), verdict.First().Message()
			st.reasons = append(st.reasons, verdict.Reasons...)
			w := wait{name: v.Name, reason: verdict.First(), claim: need.Claim}
			if volume != nil && volume.Hold != nil && volume.Hold.State != ledger.HoldAttachFailed { // that makes no event
				w.held = volume.Hold.Reason
			}
			st.waits = append(st.waits, w)
		}
		st.safe = st.safe && entry.SafeToMount
		st.broken = st.broken || before.SafeToMount && !entry.SafeToMount
		st.status.Volumes = append(st.status.Volumes, entry)
	}
	return st
}

// end completes a finished pod's volume. safeToDetach is written while the volume is attached, never after
// the detach, and stays.
func (s *state) end(entry *v1alpha1.PodVolumeStatus, before v1alpha1.PodVolumeStatus, a rules.Arbiter, snapshot ledger.Snapshot, id ledger.VolumeID, node ledger.NodeName, now time.Time) {
	volume := snapshot.Volume(id)
	place := volume.OnNode(node)
	switch {
	case before.SafeToDetach:
		entry.SafeToDetach = true
	case place == nil || !place.HasAttachments() && !place.Reported && !place.MayBeInUse():
		// It has left the node, or never came.
	default:
		verdict, force := a.SafeToDetach(snapshot, volume, place, now)
		entry.SafeToDetach = verdict.Allowed() && force == ""
		if !entry.SafeToDetach {
			s.held = append(s.held, id)
		}
	}
	s.letGo = s.letGo || entry.SafeToDetach
}

func saidOf(said v1alpha1.VolumeStatus, name string) v1alpha1.PodVolumeStatus {
	for _, v := range said.Volumes {
		if v.Name == name {
			return v
		}
	}
	return v1alpha1.PodVolumeStatus{}
}
