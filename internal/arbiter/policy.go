// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Kubernetes' own times, which apply where no policy says otherwise.
const (
	// DefaultAfterPodGone is how long after the last pod object of a node
	// that is not ready its volumes are detached by force
	// (attach_detach_controller.go, ReconcilerMaxWaitForUnmountDuration).
	DefaultAfterPodGone = 6 * time.Minute
	// DefaultGrantTimeout is how long a scheduler waits in Permit.
	DefaultGrantTimeout = 30 * time.Second
	// never stands for a rule that is switched off.
	never = time.Duration(-1)
)

// PolicyFor returns the policy that applies to a driver and a class: the one
// for both, else the one for the driver, else the defaults. Of several that
// match alike, the oldest, then the one with the smaller name.
func PolicyFor(s ledger.Snapshot, driver, class string) ledger.Policy {
	if p := s.Policy(driver, class); p != nil {
		return *p
	}
	return ledger.Policy{Driver: driver}
}

// policyOf returns the policy of a volume.
func policyOf(s ledger.Snapshot, v *ledger.Volume) ledger.Policy {
	class := ""
	for _, name := range v.PVs() {
		if pv := s.PersistentVolume(name); pv != nil && pv.Class != "" {
			class = pv.Class
			break
		}
	}
	return PolicyFor(s, v.ID.Driver, class)
}

// Accepts says whether a policy can be had in the controller's mode, and else why
// not. Only the controller knows its mode: to all others the policy itself says
// what came of it (ledger.Policy.Refused).
func (a Arbiter) Accepts(p ledger.Policy) Verdict {
	if a.refuses(p) {
		return refuse([]Reason{notBeforeBind(p)})
	}
	return allow()
}

// refuses says whether nobody would attach before a pod is bound what its policy
// wants attached by then.
func (a Arbiter) refuses(p ledger.Policy) bool {
	return a.Cooperative && !a.BeforeBind && p.BindAfterAttached
}

// refused says whether the controller has said so of a policy.
func refused(p ledger.Policy) bool { return p.Refused }

func notBeforeBind(p ledger.Policy) Reason { return Reason{Code: NotBeforeBind, Driver: p.Driver} }

// tooEarly says which policies keep a pod from every node, since they are refused.
func tooEarly(s ledger.Snapshot, r Request, refused func(ledger.Policy) bool) []Reason {
	if r.Pod == "" {
		return nil
	}
	var reasons []Reason
	for _, need := range r.Needs {
		class := ""
		if need.Claim != nil {
			class = need.Claim.Class
		}
		policy := PolicyFor(s, need.Volume.Driver, class)
		if !s.AttachRequired(need.Volume.Driver) || !refused(policy) {
			continue
		}
		reason := notBeforeBind(policy)
		reason.Volume, reason.Claim = need.Volume, need.Name
		reasons = append(reasons, reason)
	}
	return reasons
}

func afterPodGone(p ledger.Policy) time.Duration {
	if p.AfterPodGone == nil {
		return DefaultAfterPodGone
	}
	return *p.AfterPodGone
}

func afterUnreachable(p ledger.Policy) time.Duration {
	if p.AfterUnreachable == nil {
		return never
	}
	return *p.AfterUnreachable
}
