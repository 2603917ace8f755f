// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// summary is for kubectl get volumeholds.
func summary(c HoldContext, h ledger.Hold) *v1alpha1.HoldSummary {
	s := &v1alpha1.HoldSummary{
		Volume: cut(c.Volume.Handle, 4096),
		State:  v1alpha1.HoldState(h.State),
		Holder: cut(first(h.Requesters), 512),
	}
	if h.Node == ledger.Detached && h.State == ledger.HoldHeld {
		s.State = v1alpha1.HoldStateDetached
	}
	if len(h.PVs) > 0 {
		s.Volume = h.PVs[0]
	}
	if c.Claim.Name != "" {
		s.Claim = cut(c.Claim.String(), 512)
	}
	var waiting []string
	if !h.Next.To.IsZero() {
		where := "at " + string(h.Next.Node)
		if h.Next.Node == ledger.Detached {
			where = "to be detached"
		}
		waiting = append(waiting, fmt.Sprintf("%s/%s %s", h.Next.To.Namespace, h.Next.To.Name, where))
	}
	if len(h.Waiting) > 0 {
		waiting = append(waiting, first(h.Waiting))
	}
	s.Waiting = cut(strings.Join(waiting, ", "), 1024)
	return s
}

func first(list []ledger.Requester) string {
	if len(list) == 0 {
		return ""
	}
	name := list[0].Namespace + "/" + list[0].Name
	if len(list) > 1 {
		return fmt.Sprintf("%s +%d", name, len(list)-1)
	}
	return name
}

// cut keeps at most limit bytes, and whole characters.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
