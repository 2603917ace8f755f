// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// Import is a ticket for what has a volume at a node before Moorage attaches there.
type Import struct {
	// From is what the ticket is made from, for people, on one line: what objects call themselves is quoted.
	From string
	// Ticket is nil where there is none; Note says why, or what the ticket does not say.
	Ticket *v1alpha1.VolumeTicket
	Note   string
	// Err is why nothing can be said of it.
	Err error
}

// DetachesUnused says whether moorage-controller detaches what nobody uses, as far as is seen: it has written
// volumesAttached last, and leads.
func (w *World) DetachesUnused() bool {
	is, _ := w.leads(v1alpha1.ControllerName)
	return is == leads && w.Reporter().Manager == v1alpha1.ControllerName
}

// UnusedAttachments are the attached volumes that no pod and no ticket uses, such as those that a person or
// a page in a browser has attached, each with a ticket of type Manual: without one a controller that
// attaches and detaches has them detached. Sorted by volume and node.
func (w *World) UnusedAttachments(ownNamespace string, ttlSeconds int64) []Import {
	var list []Import
	for v := range w.Snapshot.Volumes() {
		for i := range v.NodeVolumes {
			at := &v.NodeVolumes[i]
			if len(at.Users) > 0 {
				continue
			}
			for _, a := range at.Attachments() {
				if a.Attached && !a.Deleting {
					list = append(list, w.importUnused(a, ownNamespace, ttlSeconds))
				}
			}
		}
	}
	return sortedImports(list)
}

func (w *World) importUnused(a *ledger.Attachment, ownNamespace string, ttlSeconds int64) Import {
	out := Import{From: fmt.Sprintf("VolumeAttachment %q", a.Name)}
	if a.PersistentVolume == "" {
		out.Note = "it names no PersistentVolume, and a ticket can't name an inline volume"
		return out
	}
	ticket, err := w.ManualTicket(a.PersistentVolume, string(a.Node), ownNamespace, ttlSeconds)
	if err != nil {
		out.Note = err.Error()
		return out
	}
	out.Ticket, out.Note = ticket, w.waitsNote(ticket)
	return out
}

// waitsNote says of a ticket that names a PersistentVolume, and so stands beside whoever has claims, what
// keeps it from being granted; empty where nothing does.
func (w *World) waitsNote(ticket *v1alpha1.VolumeTicket) string {
	if ticket.Spec.Volumes[0].PersistentVolume == "" {
		return ""
	}
	reasons := w.Refuses(ticket)
	if len(reasons) == 0 {
		return ""
	}
	return fmt.Sprintf("as things are its ticket is not granted, and keeps the volume nowhere: %s (%s). See to that before Moorage attaches here, or the volume may be detached", reasons[0].Message, reasons[0].Code)
}

func sortedImports(list []Import) []Import {
	slices.SortFunc(list, func(a, b Import) int { return cmp.Compare(a.From, b.From) })
	return list
}

// LonghornTicket is one attachment ticket of a Longhorn volume: an entry of spec.attachmentTickets of
// the volume's VolumeAttachment (longhorn.io/v1beta2).
type LonghornTicket struct {
	// Namespace is the VolumeAttachment's: that of Longhorn.
	Namespace   string
	Volume, Key string
	Type, Node  string
	Parameters  map[string]string
}

// podsOwn is the type of the tickets that Longhorn makes for Kubernetes' own VolumeAttachments: pods and
// tickets ask for these themselves.
const podsOwn = "csi-attacher"

// longhornTypes are the types of Moorage's that do what a type of Longhorn's does.
func longhornTypes() map[string]ledger.TicketType {
	return map[string]ledger.TicketType{
		"longhorn-api":                 ledger.TypeManual,
		"snapshot-controller":          ledger.TypeSnapshot,
		"backup-controller":            ledger.TypeBackup,
		"volume-clone-controller":      ledger.TypeClone,
		"bim-ds-controller":            ledger.TypeClone, // reads a volume into an image
		"salvage-controller":           ledger.TypeSalvage,
		"share-manager-controller":     ledger.TypeShareManager,
		"volume-restore-controller":    ledger.TypeRestore,
		"volume-eviction-controller":   ledger.TypeEviction,
		"volume-expansion-controller":  ledger.TypeExpansion,
		"volume-rebuilding-controller": ledger.TypeRebuild,
	}
}

// LonghornImports are the tickets that say what Longhorn's own say. driver is the CSI driver of its
// volumes, whose handles are Longhorn's names of them. Sorted by volume and ticket.
func (w *World) LonghornImports(tickets []LonghornTicket, driver, ownNamespace string, ttlSeconds int64) []Import {
	var list []Import
	for _, t := range tickets {
		list = append(list, w.importLonghorn(t, driver, ownNamespace, ttlSeconds))
	}
	return sortedImports(list)
}

func (w *World) importLonghorn(t LonghornTicket, driver, ownNamespace string, ttlSeconds int64) Import {
	out := Import{From: fmt.Sprintf("Longhorn volume %q in namespace %q, ticket %q of type %q", t.Volume, t.Namespace, t.Key, t.Type)}
	kind, known := longhornTypes()[t.Type]
	name, why := w.persistentVolumeFor(ledger.VolumeID{Driver: driver, Handle: t.Volume})
	switch {
	case t.Type == podsOwn:
		out.Note = "Kubernetes' VolumeAttachment says the same, and pods ask for it themselves"
	case !known:
		out.Note = "Moorage has no type that does this"
	case t.Node == "":
		out.Note = "it names no node"
	case name == "":
		out.Note = fmt.Sprintf("no PersistentVolume of driver %s has the handle %q", driver, t.Volume)
	}
	if out.Note != "" {
		return out
	}
	ticket, err := w.ManualTicket(name, t.Node, ownNamespace, ttlSeconds)
	if err != nil {
		out.Note = err.Error()
		return out
	}
	ticket.Name, ticket.Spec.Type = longhornName(kind, t), v1alpha1.TicketType(kind)
	apart := ""
	if t.Parameters["disableFrontend"] == "true" {
		ticket.Spec.Parameters = map[string]string{"disableFrontend": "true"}
		apart = "Longhorn has it attached without a device (disableFrontend=true), for maintenance: the ticket says so in spec.parameters, and keeps pods from it meanwhile; the driver is not told"
	}
	notes := slices.DeleteFunc([]string{why, apart, w.waitsNote(ticket)}, func(note string) bool { return note == "" })
	out.Ticket, out.Note = ticket, strings.Join(notes, "; ")
	return out
}

// persistentVolumeFor is the PersistentVolume by which a volume is asked for, and, where several name the volume, which
// one that is and why: one that a claim has, then one whose phase is Bound, then the first by name. Empty
// where none names it.
func (w *World) persistentVolumeFor(id ledger.VolumeID) (name, why string) {
	v := w.Snapshot.Volume(id)
	if v == nil || len(v.PVs()) == 0 {
		return "", ""
	}
	names := slices.Sorted(slices.Values(v.PVs()))
	if len(names) == 1 {
		return names[0], ""
	}
	var claimed, bound []string
	for _, n := range names {
		fact, object := w.Snapshot.PersistentVolume(n), w.PersistentVolume(n)
		if fact == nil || object == nil {
			continue
		}
		if _, _, ok := w.claimedBy(fact); ok {
			claimed = append(claimed, n)
		}
		if object.Status.Phase == corev1.VolumeBound {
			bound = append(bound, n)
		}
	}
	switch {
	case len(claimed) > 1:
		name, why = claimed[0], "the first of those that claims have"
	case len(claimed) == 1:
		name, why = claimed[0], "the one that a claim has"
	case len(bound) > 0:
		name, why = bound[0], "the first whose phase is Bound; no claim has any of them"
	default:
		name, why = names[0], "the first by name; no claim has any of them, and none is Bound"
	}
	listed := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if more := len(names) - maxNamed; more > 0 {
		listed += fmt.Sprintf(" and %d more", more)
	}
	return name, fmt.Sprintf("%s name this volume (%s): its ticket is for %s, %s. It keeps the disk, by whichever name", Count(len(names), "PersistentVolume"), listed, name, why)
}

// maxNamed is how many PersistentVolumes of one volume a message names.
const maxNamed = 4

// longhornName is the name of the ticket that a Longhorn ticket becomes: the same command finds it again.
func longhornName(kind ledger.TicketType, t LonghornTicket) string {
	digest := sha256.Sum256([]byte(t.Volume + "\x00" + t.Key + "\x00" + t.Node))
	return "longhorn-" + strings.ToLower(string(kind)) + "-" + hex.EncodeToString(digest[:10])
}
