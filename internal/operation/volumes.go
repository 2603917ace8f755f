// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

type volume struct {
	pv, driver string
	namespace  string // of the ticket
	of         v1alpha1.TicketVolume
	policy     ledger.Policy
}

// ofHandles leaves no volume out: a group is cut as a whole.
func (d *decision) ofHandles(w *Work) ([]volume, bool) {
	var volumes []volume
	for _, handle := range w.Handles {
		pv := d.persistentVolume(ledger.VolumeID{Driver: w.Driver, Handle: handle}, w.Told.Namespace)
		if pv == nil {
			return nil, false // without a PersistentVolume it has no user
		}
		v := d.volume(pv)
		if c := d.claimOf(pv); c != nil && w.Told.Namespace != "" && c.Key.Namespace != w.Told.Namespace {
			if (v.policy.AttachFor | v.policy.DetachFor).Has(w.Operation) && d.Snapshot.AttachRequired(v.driver) {
				d.trouble(w, ReasonOutside, "volume "+handle+" belongs to claims of other namespaces: no ticket is made there for a snapshot of this one, so have it attached or detached there as the driver needs it")
			}
			return nil, false
		}
		volumes = append(volumes, v)
	}
	return volumes, len(volumes) > 0
}

// persistentVolume prefers a claim of the namespace, then any claim.
func (d *decision) persistentVolume(id ledger.VolumeID, namespace string) *ledger.PersistentVolume {
	v := d.Snapshot.Volume(id)
	if v == nil {
		return nil
	}
	var first, claimed *ledger.PersistentVolume
	for _, name := range slices.Sorted(slices.Values(v.PVs())) {
		pv := d.Snapshot.PersistentVolume(name)
		if pv == nil {
			continue
		}
		first = cmp.Or(first, pv)
		if c := d.claimOf(pv); c != nil {
			if c.Key.Namespace == namespace {
				return pv
			}
			claimed = cmp.Or(claimed, pv)
		}
	}
	return cmp.Or(claimed, first)
}

func (d *decision) claimOf(pv *ledger.PersistentVolume) *ledger.Claim {
	c := d.Snapshot.Claim(pv.Claim)
	if of := boundTo(d.Snapshot, c); of == nil || of.Name != pv.Name {
		return nil
	}
	return c
}

func (d *decision) volume(pv *ledger.PersistentVolume) volume {
	v := volume{pv: pv.Name, driver: pv.Volume.Driver, policy: rules.PolicyFor(d.Snapshot, pv.Volume.Driver, pv.Class)}
	if c := d.claimOf(pv); c != nil {
		v.namespace = c.Key.Namespace
		v.of.Claim = &v1alpha1.ClaimReference{Name: c.Key.Name, UID: types.UID(c.UID)}
		return v
	}
	v.namespace, v.of.PersistentVolume = d.Namespace, pv.Name
	return v
}

func (d *decision) ofClaim(of ledger.ClaimKey) ([]volume, bool) {
	pv := boundTo(d.Snapshot, d.Snapshot.Claim(of))
	if pv == nil {
		return nil, false
	}
	return []volume{d.volume(pv)}, true
}

// ofClone is the source of a clone once the driver is asked for it: at once, or after a node is selected
// (WaitForFirstConsumer).
func (d *decision) ofClone(w *Work) ([]volume, bool) {
	target := d.Snapshot.Claim(ledger.ClaimKey{Namespace: w.Object.Namespace, Name: w.Object.Name})
	if target == nil || target.UID != w.Object.UID || target.PersistentVolume != "" {
		return nil, false
	}
	class := d.Snapshot.StorageClass(target.Class)
	if class == nil || class.WaitForFirst && target.SelectedNode == "" {
		return nil, false
	}
	if w.Outside {
		if policy := rules.PolicyFor(d.Snapshot, class.Driver, target.Class); (policy.AttachFor | policy.DetachFor).Has(ledger.OperationClone) {
			d.trouble(w, ReasonOutside, "its source is in namespace "+w.Claim.Namespace+": no ticket is made for a claim of another namespace, so have the source attached or detached there as the driver needs it")
		}
		return nil, false
	}
	source, ok := d.ofClaim(w.Claim)
	if !ok || source[0].driver != class.Driver {
		return nil, false
	}
	return source, true
}

// due are the volumes for which a policy asks for a ticket, and whether to detach them.
func (d *decision) due(w *Work, all []volume) (volumes []volume, detached, ok bool) {
	attached := false
	for _, v := range all {
		if (ledger.VolumeID{Driver: v.driver}).NoAttach() || !d.Snapshot.AttachRequired(v.driver) {
			continue // nothing to attach
		}
		switch {
		case v.policy.AttachFor.Has(w.Operation):
			attached = true
		case v.policy.DetachFor.Has(w.Operation):
			detached = true
		default:
			continue
		}
		volumes = append(volumes, v)
	}
	mixed := slices.ContainsFunc(volumes, func(v volume) bool { return v.namespace != volumes[0].namespace })
	switch {
	case len(volumes) == 0:
		return nil, false, false
	case mixed:
		d.trouble(w, ReasonMixed, "its volumes belong to claims of several namespaces, or to none: no ticket is made for them together")
		return nil, false, false
	case attached && detached:
		d.trouble(w, ReasonMixed, "the AttachPolicies of its volumes' classes say attachFor of some and detachFor of others: no ticket is made for them together, so say the same of all")
		return nil, false, false
	}
	return volumes, detached, true
}

const maxNamed = 4

// apart names the nodes of a group's volumes if there are several; else empty.
func (d *decision) apart(w *Work) string {
	if !w.Group {
		return ""
	}
	var at []string
	nodes := map[ledger.NodeName]bool{}
	for _, handle := range w.Handles {
		v := d.Snapshot.Volume(ledger.VolumeID{Driver: w.Driver, Handle: handle})
		node := v.Record().Node
		if node == "" || node == ledger.Detached {
			continue
		}
		if !nodes[node] { // one of each node
			at = append(at, handle+" at "+string(node))
		}
		nodes[node] = true
	}
	if len(nodes) < 2 {
		return ""
	}
	if len(at) > maxNamed {
		at = append(at[:maxNamed], "…")
	}
	return strings.Join(at, ", ")
}
