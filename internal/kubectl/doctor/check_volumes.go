// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// checkAttachments finds attachments that nobody will ever detach.
func checkAttachments(e *Evidence) []Finding {
	var list []Finding
	total := 0
	for _, o := range e.World.Orphans() {
		list = append(list, found(Warning, "VolumeAttachment "+o.Attachment+" of "+o.Volume+" at "+o.Node, o.Fix, "%s", o.Message))
	}
	total = len(e.World.Attachments)
	if len(list) == 0 {
		list = append(list, ok("each of %d VolumeAttachments has a node, a volume and its own name", total))
	}
	return list
}

// checkWaits lists volumes that should have left a node or been attached to one,
// and tickets that wait, for long. Volumes of one node that wait for the same are one finding.
func checkWaits(e *Evidence) []Finding {
	var list []Finding
	for _, g := range waitingVolumes(e) {
		list = append(list, g.finding(e.now()))
	}
	for _, t := range e.World.ListTickets("", false) {
		if t.State != facts.TicketPending || e.now().Sub(t.Created) < facts.LongWait || len(t.Reasons) == 0 {
			continue
		}
		list = append(list, found(Info, "VolumeTicket "+t.Namespace+"/"+t.Name, t.Reasons[0].Do,
			"a ticket of type %s waits for %s: %s", t.Type, e.now().Sub(t.Created).Round(time.Second), t.Reasons[0].Message))
	}
	if len(list) == 0 {
		list = append(list, ok("no volume and no ticket has waited for longer than %s", facts.LongWait))
	}
	return list
}

// waiting are volumes of one node that wait for the same; of reasons that name no node, one.
type waiting struct {
	first facts.Reason
	since time.Time // the earliest
	// names are claims, or PersistentVolumes without one; holds are driver^handle.
	names, holds []string
}

func waitingVolumes(e *Evidence) []*waiting {
	var list []*waiting
	for _, v := range e.World.ListVolumes("") {
		if v.Reason == nil || v.Reason.Since.IsZero() || e.now().Sub(v.Reason.Since) < facts.LongWait {
			continue
		}
		same := func(g *waiting) bool {
			return v.Reason.Node != "" && g.first.Node == v.Reason.Node && g.first.Code == v.Reason.Code
		}
		i := slices.IndexFunc(list, same)
		if i < 0 {
			i, list = len(list), append(list, &waiting{first: *v.Reason, since: v.Reason.Since})
		}
		g := list[i]
		if v.Reason.Since.Before(g.since) {
			g.since = v.Reason.Since
		}
		g.names = append(g.names, cmp.Or(v.Claim, v.PersistentVolume))
		g.holds = append(g.holds, v.Driver+"^"+v.Handle)
	}
	return list
}

func (g *waiting) finding(now time.Time) Finding {
	since := now.Sub(g.since).Round(time.Second)
	if len(g.names) == 1 {
		return found(Warning, "VolumeHold of "+g.holds[0], g.first.Do, "%s: %s for %s: %s", g.names[0], g.first.Code, since, g.first.Message)
	}
	first := g.names[0]
	return found(Warning, "VolumeHolds of "+some(g.holds), g.first.Do, "%d volumes at %s: %s for up to %s: %s. Of %s: %s",
		len(g.names), g.first.Node, g.first.Code, since, some(g.names), first, g.first.Message)
}

// checkInvariants asks the core whether anything is as it must never be.
func checkInvariants(e *Evidence) []Finding {
	var list []Finding
	for _, v := range e.World.Arbiter.Audit(e.World.Snapshot, e.now()) {
		list = append(list, found(Error, v.String(), "Stop the pods that use the volume, and report it: docs/internals/invariants.md says what it means.",
			"%sinvariant %s is broken: %s", claimed(e.World, v.Volume), v.Invariant, v.Message))
	}
	if len(list) == 0 {
		list = append(list, ok("no invariant is seen broken"))
	}
	return list
}

// claimed begins a finding about a volume with its claim; empty where it has none.
func claimed(w *facts.World, id ledger.VolumeID) string {
	if claim := w.Volume(id).Claim; claim != "" {
		return claim + ": "
	}
	return ""
}

// components are the roles of the processes that every installation has.
func components() []string {
	return []string{v1alpha1.ControllerName, v1alpha1.SchedulerName}
}

// checkRBAC looks for roles that are missing, bound to nobody, or too wide.
func checkRBAC(e *Evidence) []Finding {
	if e.Roles.Err != nil {
		return unchecked("clusterroles.rbac.authorization.k8s.io", e.Roles.Err)
	}
	if e.RoleBinds.Err != nil {
		return unchecked("clusterrolebindings.rbac.authorization.k8s.io", e.RoleBinds.Err)
	}
	var list []Finding
	names := components()
	for _, name := range names {
		role := e.role(name)
		switch {
		case role == nil:
			list = append(list, found(Error, "there is no ClusterRole "+name, "Install the chart again.", "ClusterRole %s is missing", name))
		case !e.bound(name):
			list = append(list, found(Error, "no ClusterRoleBinding names it with a service account "+name, "Install the chart again.", "ClusterRole %s is bound to nobody", name))
		case wide(role) != "":
			list = append(list, found(Warning, wide(role), "Install the chart's roles as they are.", "ClusterRole %s grants more than Moorage needs", name))
		}
	}
	if len(list) == 0 {
		list = append(list, ok("the roles of %d components are there, bound, and without wildcards", len(names)))
	}
	return list
}

func (e *Evidence) role(name string) *rbacv1.ClusterRole {
	for i := range e.Roles.Items {
		if e.Roles.Items[i].Name == name {
			return &e.Roles.Items[i]
		}
	}
	return nil
}

func (e *Evidence) bound(name string) bool {
	for _, b := range e.RoleBinds.Items {
		if b.RoleRef.Name != name {
			continue
		}
		for _, s := range b.Subjects {
			if s.Kind == rbacv1.ServiceAccountKind && s.Name == name {
				return true
			}
		}
	}
	return false
}

// wide names the first wildcard of a role.
func wide(role *rbacv1.ClusterRole) string {
	for _, rule := range role.Rules {
		for _, list := range [][]string{rule.Verbs, rule.Resources, rule.APIGroups} {
			for _, x := range list {
				if x == "*" {
					return fmt.Sprintf("a rule with a wildcard: verbs %v, resources %v, groups %v", rule.Verbs, rule.Resources, rule.APIGroups)
				}
			}
		}
	}
	return ""
}
