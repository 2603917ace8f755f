// SPDX-License-Identifier: Apache-2.0

// Package networkfence decides on the NetworkFences of csi-addons, by which a driver's storage cuts off
// unreachable machines: their creation, confirmation and end, and the Node's condition. It is pure: package
// controller/networkfence reads and writes the objects (docs/decisions/0062).
package networkfence

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// GroupVersion is the version of csi-addons' API.
var GroupVersion = schema.GroupVersion{Group: "csiaddons.openshift.io", Version: "v1alpha1"}

// The words of that API (kubernetes-csi-addons, api/csiaddons/v1alpha1). The status has no generation: only
// its message names the operation that succeeded.
const (
	stateFenced   = "Fenced"
	stateUnfenced = "Unfenced"
	succeeded     = "Succeeded"
	unfencedWords = "unfencing operation successful"
)

const (
	annotationNode       = "moorage.dev/fenced-node"
	annotationNodeUID    = "moorage.dev/fenced-node-uid"
	annotationSystemUUID = "moorage.dev/fenced-system-uuid"
	annotationBootID     = "moorage.dev/fenced-boot-id"
	annotationDriver     = "moorage.dev/fenced-driver"
	// annotationState is a word and the NetworkFence's own UID: a fence made again from a file is another.
	annotationState = "moorage.dev/fence-state"
	// annotationLook is the number of the question to moorage-node, with its outage and NodeMountReport.
	annotationLook = "moorage.dev/fence-look"
)

// These words only go forward: a late write of a former leader fails on the version.
const (
	// confirmed by the storage. It is written before anything follows.
	confirmed = "confirmed"
	// void: another NetworkFence has since asked to let the same client in. The fence no longer counts,
	// even when that object is gone.
	void = "void"
	// over: nothing follows from the fence any more. It is written before the storage is asked to let the
	// machine in.
	over = "over"
)

// maxCIDRs bounds the CIDRs of an object: more count as unreadable.
const maxCIDRs = 256

// Fence has the facts of a NetworkFence.
type Fence struct {
	Name, UID, Version string
	Class, Driver      string // from its field; a class names the driver as well
	CIDRs              []netip.Prefix
	Unreadable         bool // has an invalid CIDR
	Fenced             bool // spec.fenceState; else it asks to unfence
	Changed            bool // spec was changed: the status may be about the former spec
	Succeeded          bool // status.result
	Unfenced           bool // the unfencing has succeeded
	Message            string
	Deleting           bool

	// For a fence of Moorage.
	Ours      bool
	Machine   rules.CutMachine
	Confirmed bool // and neither void nor over
	Void      bool // and not over
	Over      bool
}

// FenceOf reads a NetworkFence. Malformed fields read as empty.
func FenceOf(o *unstructured.Unstructured) Fence {
	text := func(path ...string) string {
		s, _, _ := unstructured.NestedString(o.Object, path...)
		return s
	}
	f := Fence{
		Name: o.GetName(), UID: string(o.GetUID()), Version: o.GetResourceVersion(),
		Class: text("spec", "networkFenceClassName"), Driver: text("spec", "driver"),
		Fenced:    text("spec", "fenceState") == stateFenced,
		Changed:   o.GetGeneration() != 1,
		Succeeded: text("status", "result") == succeeded,
		Message:   text("status", "message"),
		Deleting:  o.GetDeletionTimestamp() != nil,
	}
	f.Unfenced = f.Succeeded && f.Message == unfencedWords
	cidrs, _, err := unstructured.NestedStringSlice(o.Object, "spec", "cidrs")
	f.CIDRs, f.Unreadable = prefixes(cidrs)
	f.Unreadable = f.Unreadable || err != nil
	a := o.GetAnnotations()
	if f.Ours = a[annotationNode] != "" && a[annotationDriver] != ""; f.Ours {
		is := func(word string) bool { return a[annotationState] == word+" "+f.UID }
		f.Confirmed, f.Void, f.Over = is(confirmed), is(void), is(over)
		f.Machine = rules.CutMachine{
			Driver: a[annotationDriver], Node: ledger.NodeName(a[annotationNode]), NodeUID: a[annotationNodeUID],
			SystemUUID: a[annotationSystemUUID], BootID: a[annotationBootID],
		}
		f.Machine.Look, f.Machine.LookSince, f.Machine.LookWord = lookOf(a[annotationLook])
	}
	return f
}

func lookOf(text string) (number, since int64, word string) {
	parts := strings.Fields(text)
	if len(parts) != 3 {
		return 0, 0, ""
	}
	number, err := strconv.ParseInt(parts[0], 10, 64)
	since, errSince := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || errSince != nil || number < 0 {
		return 0, 0, ""
	}
	return number, since, parts[2]
}

func prefixes(cidrs []string) (list []netip.Prefix, unreadable bool) {
	if len(cidrs) > maxCIDRs {
		return nil, true
	}
	for _, text := range cidrs {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			address, err := netip.ParseAddr(text)
			if err != nil {
				unreadable = true
				continue
			}
			p = netip.PrefixFrom(address, address.BitLen())
		}
		list = append(list, canonical(p))
	}
	return list, unreadable
}

// canonical drops host bits, and turns IPv4 within IPv6 into IPv4.
func canonical(p netip.Prefix) netip.Prefix {
	if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
	}
	return p.Masked()
}

// Clients are a driver's clients at one node, from a CSIAddonsNode.
type Clients struct {
	Driver, NodeID string
	// OfClass are the CIDRs by NetworkFenceClass; Unreadable are the classes with an invalid CIDR.
	OfClass    map[string][]netip.Prefix
	Unreadable map[string]bool
}

// ClientsOf reads a CSIAddonsNode.
func ClientsOf(o *unstructured.Unstructured) Clients {
	c := Clients{OfClass: map[string][]netip.Prefix{}, Unreadable: map[string]bool{}}
	c.Driver, _, _ = unstructured.NestedString(o.Object, "spec", "driver", "name")
	c.NodeID, _, _ = unstructured.NestedString(o.Object, "spec", "driver", "nodeID")
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "networkFenceClientStatus")
	for _, item := range list {
		of, _ := item.(map[string]any)
		class, _, _ := unstructured.NestedString(of, "networkFenceClassName")
		details, _, _ := unstructured.NestedSlice(of, "ClientDetails")
		for _, item := range details {
			detail, _ := item.(map[string]any)
			cidrs, found, err := unstructured.NestedStringSlice(detail, "cidrs")
			read, unreadable := prefixes(cidrs)
			c.OfClass[class] = append(c.OfClass[class], read...)
			if unreadable || err != nil || !found || len(cidrs) == 0 {
				c.Unreadable[class] = true
			}
		}
	}
	return c
}

// Object is the NetworkFence of a Make action. It has all empty fields of csi-addons' Go type, so that the
// write of its finalizer leaves the spec and the generation unchanged.
func (a Action) Object() *unstructured.Unstructured {
	cidrs := make([]any, 0, len(a.CIDRs))
	for _, p := range a.CIDRs {
		cidrs = append(cidrs, p.String())
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{
			"networkFenceClassName": a.Class, "fenceState": stateFenced, "cidrs": cidrs,
			"driver": "", "secret": map[string]any{},
		},
	}}
	o.SetGroupVersionKind(GroupVersion.WithKind("NetworkFence"))
	o.SetName(a.Name)
	o.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "moorage"})
	m := a.Machine
	o.SetAnnotations(map[string]string{
		annotationNode: string(m.Node), annotationNodeUID: m.NodeUID, annotationSystemUUID: m.SystemUUID,
		annotationBootID: m.BootID, annotationDriver: m.Driver,
	})
	return o
}

// Patch is the merge patch of an action on a NetworkFence, at exactly its UID and version; else nil. is is
// the API server's Node for the boot: a later boot has nothing mounted. None is noted for another machine
// of the name.
func (a Action) Patch(is ledger.NodeState) map[string]any {
	meta := map[string]any{"uid": a.UID, "resourceVersion": a.Version}
	boot := ""
	if is.UID == a.Machine.NodeUID && is.SystemUUID == a.Machine.SystemUUID {
		boot = is.BootID
	}
	switch a.Do {
	case Confirm:
		meta["annotations"] = map[string]any{annotationState: confirmed + " " + a.UID, annotationBootID: boot}
	case Doubt:
		meta["annotations"] = map[string]any{annotationState: void + " " + a.UID, annotationBootID: boot}
	case End:
		meta["annotations"] = map[string]any{annotationState: over + " " + a.UID}
	case NoteLook:
		m := a.Machine
		meta["annotations"] = map[string]any{annotationLook: fmt.Sprint(m.Look, " ", m.LookSince, " ", m.LookWord)}
	case Unfence:
		return map[string]any{"metadata": meta, "spec": map[string]any{"fenceState": stateUnfenced}}
	default:
		return nil
	}
	return map[string]any{"metadata": meta}
}

// Condition is the Node's condition about the driver's storage.
func (a Action) Condition(now metav1.Time) map[string]any {
	return map[string]any{
		"type": a.ConditionType(), "status": "True", "reason": "NetworkFence", "lastTransitionTime": now.UTC().Format("2006-01-02T15:04:05Z"),
		"message": "the storage of " + a.Driver + " has cut this machine off (NetworkFence " + a.Name + "): what is mounted here reads and writes nothing",
	}
}
