// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"context"
	"fmt"
	"slices"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/execute"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/translate"
)

// Missing lists the volumes of a ticket that lead nowhere. That a ticket names
// them says that whoever wrote it has seen them, and an informer here may be
// behind: nothing is refused for good, and no grant taken back, before a
// consistent read says the same. It is pure.
func Missing(s ledger.Snapshot, t *ledger.Ticket) []ledger.TicketVolume {
	var list []ledger.TicketVolume
	for _, v := range t.Volumes {
		if _, link := s.ResolveTicket(t, v); link == ledger.LinkMissing {
			list = append(list, v)
		}
	}
	return list
}

// WithoutNode says whether a verdict takes a ticket's node for missing: that, too,
// may be what an informer has not shown yet. It is pure.
func WithoutNode(v arbiter.Verdict) bool {
	return slices.ContainsFunc(v.Reasons, func(r arbiter.Reason) bool { return r.Code == arbiter.NodeMissing })
}

// prove returns nil when what a refusal takes for missing is missing indeed. What
// is there makes the decision one on old facts: it is taken in, and the ticket is
// to be decided anew.
func (c *Controller) prove(ctx context.Context, t *ledger.Ticket, d Decision) error {
	if WithoutNode(d.Verdict) {
		node, err := c.config.Cache.ConfirmNode(ctx, string(t.Node))
		if err != nil {
			return err
		}
		if node != nil {
			return fmt.Errorf("%w: node %s of ticket %s is there", execute.ErrStale, t.Node, t.ID)
		}
	}
	for _, v := range d.Missing {
		found, err := c.find(ctx, t, v)
		if err != nil {
			return err
		}
		if found {
			return fmt.Errorf("%w: volume %s%s of ticket %s is there", execute.ErrStale, v.Claim, v.PodVolume, t.ID)
		}
	}
	return nil
}

// find says whether what a volume of a ticket names is there now.
func (c *Controller) find(ctx context.Context, t *ledger.Ticket, v ledger.TicketVolume) (bool, error) {
	if v.Claim != "" {
		claim, err := c.config.Cache.ConfirmClaim(ctx, t.ID.Namespace, v.Claim)
		return claim != nil && (v.ClaimUID == "" || string(claim.UID) == v.ClaimUID), err
	}
	if t.Pod == "" {
		return false, nil
	}
	pod, err := c.config.Cache.ConfirmPod(ctx, t.ID.Namespace, t.PodName, t.Pod)
	if pod == nil || err != nil {
		return false, err
	}
	fact, _ := translate.Pod(pod) // without volumes whose source is broken: nobody can attach those
	return slices.ContainsFunc(fact.Volumes, func(p ledger.PodVolume) bool { return p.Name == v.PodVolume && p.Claim == "" }), nil
}
