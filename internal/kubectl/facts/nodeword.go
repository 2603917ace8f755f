// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// NodeWord is moorage-node's report on its node, for display only.
type NodeWord struct {
	State string `json:"state"`
	// Note explains an outdated report.
	Note string `json:"note,omitempty"`
	// Has are odd volumes; empty for another boot, since its mounts are gone.
	Has []NodeHas `json:"has,omitempty"`
	// Unread parts may have more volumes.
	Unread []string `json:"unread,omitempty"`
}

const (
	WordSpeaks  = "Speaks"
	WordPartial = "Partial"    // some parts could not be read
	WordSilent  = "Silent"     // it owes an answer
	WordOld     = "Old"        // it has not looked since the boot or the Node's creation, or that is unknown
	WordAbsent  = "Absent"     // there is none
	WordUnseen  = "NotVisible" // unreadable, or not served by the cluster
)

// NodeHas is a volume by the node's own report.
type NodeHas struct {
	Node string `json:"node"`
	// Volume is as SlotVolume.Volume; empty if its handle could not be read.
	Volume string `json:"volume,omitempty"`
	Claim  string `json:"claim,omitempty"`
	Driver string `json:"driver,omitempty"`
	// Path is its staging path below the kubelet's folder.
	Path    string `json:"path"`
	Mode    string `json:"mode"`
	Staged  string `json:"staged"`
	Mounted string `json:"mounted"`
	// Leaked: it may be staged, mounted or published, but pods' folders, the node's pods and volumesInUse
	// lack it.
	Leaked bool `json:"leaked,omitempty"`
	// PodsGone are UIDs of mounting pods that are not at the node.
	PodsGone     []string `json:"podsGone,omitempty"`
	KubeletKnows bool     `json:"kubeletKnows,omitempty"`
	// NoAttachment: it has no VolumeAttachment there.
	NoAttachment bool `json:"noAttachment,omitempty"`
}

// Odd says whether a person should look at it.
func (x *NodeHas) Odd() bool { return x.Leaked || len(x.PodsGone) > 0 || x.NoAttachment }

// NodeWordOf is a node's report.
func (w *World) NodeWordOf(name ledger.NodeName) NodeWord {
	var out NodeWord
	object := w.words[name]
	out.State, out.Note = w.wordState(name, object)
	if object == nil {
		return out
	}
	out.Unread = slices.Clone(object.Status.Unknown)
	for i := range object.Status.Volumes {
		if v := &object.Status.Volumes[i]; unnamed(*v) && v.Unknown != "" {
			out.Unread = append(out.Unread, v.Unknown)
		}
	}
	for i := range object.Status.Volumes {
		if has, ok := w.has(name, &object.Status.Volumes[i]); ok && has.Odd() {
			out.Has = append(out.Has, has)
		}
	}
	return out
}

// agentMissing says whether moorage-node has pods, but none ready there. Without any pod it may run in
// another form.
func (w *World) agentMissing(node ledger.NodeName) bool {
	return len(w.agents) > 0 && !w.agents[node] && !w.partUnseen("pods")
}

func (w *World) isAgent(p *corev1.Pod) bool {
	ready := podCondition(p, corev1.PodReady)
	return Own(p, w.Home) && p.Labels["app.kubernetes.io/component"] == "node" && ready != nil && ready.Status == corev1.ConditionTrue
}

func unnamed(v v1alpha1.ReportedVolume) bool { return v.Driver == "" || v.Handle == "" }

func ofEarlierBoot(node *corev1.Node, object *v1alpha1.NodeMountReport) bool {
	return node.Status.NodeInfo.BootID != "" && object.Status.BootID != node.Status.NodeInfo.BootID
}

// askedToLook is by the API server's field management; now if not noted.
func askedToLook(object *v1alpha1.NodeMountReport, now time.Time) time.Time {
	if asked, _ := lastWrite(object, "look"); !asked.at.IsZero() {
		return asked.at
	}
	return now
}

// has is false if the volume is gone, or was in another boot.
func (w *World) has(name ledger.NodeName, v *v1alpha1.ReportedVolume) (NodeHas, bool) {
	if v.Staged == v1alpha1.NodeNo && v.Mounted == v1alpha1.NodeNo && len(v.Published) == 0 && !v.MoreFileSystems {
		return NodeHas{}, false
	}
	if node := w.nodes[name]; node != nil && ofEarlierBoot(node, w.words[name]) {
		return NodeHas{}, false
	}
	out := NodeHas{Node: string(name), Driver: v.Driver, Path: v.Path, Mode: v.Mode, Staged: string(v.Staged), Mounted: string(v.Mounted)}
	for _, p := range v.Published {
		if p.Mounted != v1alpha1.NodeNo && !w.partUnseen("pods") && (w.pods[p.PodUID] == nil || w.pods[p.PodUID].Spec.NodeName != string(name)) {
			out.PodsGone = append(out.PodsGone, p.PodUID)
		}
	}
	// A just published block volume has only a record, and a known pod.
	onlyRecord := v.Mode == string(corev1.PersistentVolumeBlock) && v.Staged == v1alpha1.NodeUnknown && len(v.Published) == 0
	out.Leaked = v.Forgotten || onlyRecord
	if !unnamed(*v) {
		w.compare(&out, name, v, ledger.VolumeID{Driver: v.Driver, Handle: v.Handle})
	}
	return out, true
}

func (w *World) compare(out *NodeHas, name ledger.NodeName, v *v1alpha1.ReportedVolume, id ledger.VolumeID) {
	out.Volume = id.String()
	var at *ledger.VolumeOnNode
	if known := w.Snapshot.Volume(id); known != nil {
		at = known.OnNode(name)
		out.Volume, out.Claim = w.named(known)
	}
	if node := w.nodes[name]; node != nil {
		out.KubeletKnows = slices.Contains(node.Status.VolumesInUse, convert.UniqueName(id))
	}
	out.Leaked = out.Leaked && !out.KubeletKnows && !at.UsedByPod()
	out.NoAttachment = w.Snapshot.AttachRequired(v.Driver) && !w.unseen("volumeattachments.storage.k8s.io") && !at.HasAttachments()
}

// Words name the volume and its oddity.
func (x *NodeHas) Words() string {
	return cmp.Or(x.Claim, x.Volume, "a volume of an unknown handle") + ": " + x.Oddity()
}

// Oddity says why it needs a person's attention.
func (x *NodeHas) Oddity() string {
	var parts []string
	if x.Leaked {
		parts = append(parts, "staged or mounted at "+x.Path+", and neither a pod nor the kubelet knows of it")
	}
	if len(x.PodsGone) > 0 {
		text := fmt.Sprintf("mounted for %s gone from there (%s)", Count(len(x.PodsGone), "pod"), strings.Join(x.PodsGone, ", "))
		if x.KubeletKnows {
			text += ", and its kubelet is about to unmount it"
		}
		parts = append(parts, text)
	}
	if x.NoAttachment {
		parts = append(parts, "no VolumeAttachment attaches it there: another node may be given it")
	}
	return strings.Join(parts, "; ")
}

type wordRef struct {
	node   ledger.NodeName
	volume *v1alpha1.ReportedVolume
}

func (w *World) takeWords() {
	for _, n := range w.NodeMountReports {
		name := ledger.NodeName(n.Name)
		w.words[name] = n
		for i := range n.Status.Volumes {
			v := &n.Status.Volumes[i]
			id := ledger.VolumeID{Driver: v.Driver, Handle: v.Handle}
			w.wordsOf[id] = append(w.wordsOf[id], wordRef{name, v})
		}
	}
}

func (w *World) nodesSaying(id ledger.VolumeID) []NodeHas {
	var list []NodeHas
	for _, ref := range w.wordsOf[id] {
		if has, ok := w.has(ref.node, ref.volume); ok && has.Odd() {
			list = append(list, has)
		}
	}
	slices.SortFunc(list, func(a, b NodeHas) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Path, b.Path)) })
	return list
}

// asHeard prefers the controller's reason: the controller also hears moorage-node.
func (w *World) asHeard(r rules.Reason) rules.Reason {
	v := w.Snapshot.Volume(r.Volume)
	if r.Code != rules.Detaching || !w.holdsKept || v == nil || v.Hold == nil || v.Hold.Node != r.Node {
		return r
	}
	if va := v.OnNode(r.Node).Canonical(); va == nil || va.Deleting {
		return r
	}
	if heard := v.Hold.Reason; heard == rules.StagedAtNode || heard == rules.InUseUnknown {
		r.Code = heard
	}
	return r
}

// OfToday says whether moorage-node has looked since the boot and the Node's creation, and still answers.
func (x *NodeWord) OfToday() bool {
	return x.State == WordSpeaks || x.State == WordPartial || x.State == WordUnseen
}

func (w *World) wordState(name ledger.NodeName, object *v1alpha1.NodeMountReport) (state, note string) {
	node := w.nodes[name]
	switch {
	case w.WordsUnseen != nil:
		return WordUnseen, "the cluster does not serve nodemountreports.moorage.dev, or you may not list them, so that what it has staged or mounted is not known"
	case object == nil || object.Status.Observed == nil:
		return WordAbsent, "moorage-node has said nothing there: what it has staged or mounted is known from its kubelet only"
	case node != nil && node.Status.NodeInfo.BootID == "" && object.Status.BootID != "":
		return WordOld, "its kubelet reports no bootID (status.nodeInfo of the Node), so that nobody can tell whether what moorage-node says is of this boot: it does not count"
	case node != nil && node.Status.NodeInfo.BootID != "" && object.Status.BootID == "":
		return WordOld, "moorage-node there can't read /proc/sys/kernel/random/boot_id, so that nobody can tell whether what it says is of this boot: it does not count"
	case node != nil && (ofEarlierBoot(node, object) || object.Status.NodeUID != node.UID):
		return WordOld, "moorage-node has not looked since the machine was booted or the Node was made: what it has said there is of an earlier boot or Node"
	case w.agentMissing(name), object.Spec.Look > object.Status.Looked && w.Now.Sub(askedToLook(object, w.Now)) >= rules.LookPatience:
		return WordSilent, "moorage-node there does not answer: what it said last may be old. If it is gone for good, delete the NodeMountReport"
	case object.Status.Truncated && len(object.Status.Unlisted) == 0 || len(object.Status.Unknown) > 0 || slices.ContainsFunc(object.Status.Volumes, unnamed):
		return WordPartial, "moorage-node can't read all of what the node has: what it does not list may be there"
	}
	return WordSpeaks, ""
}
