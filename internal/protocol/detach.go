// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// unreported is the proof by a step. A proof by force is another proof.
func unreported(step rules.Step) ledger.Event {
	return ledger.Unreported{Volume: step.Volume, Node: step.Node, UID: step.UID, Version: step.Version, Forced: step.Rule != "", Unknown: step.Unknown, Ready: step.WhileReady}
}

// absentAnswered follows the read of a Node with another writer of volumesAttached, or after an unanswered
// report: is the volume in use or reported there?
func absentAnswered(t Task, a Answer) (Task, Move) {
	node, found := first[ledger.NodeState](a)
	switch {
	case found && absent(node, t.Step), a.Result == NotFound && t.Step.NodeUID == "":
		return t.end(Finished, "", unreported(t.Step))
	case found && t.Step.Volume.NoAttach() && t.Step.Rule == "" && node.UID == t.Step.NodeUID && !slices.Contains(node.Reported, t.Step.Volume):
		return t.end(Finished, "", ledger.NotReported{Volume: t.Step.Volume, Node: t.Step.Node})
	case found, a.Result == NotFound:
		return t.end(Stale, fmt.Sprintf("node %s is not as it was", t.Step.Node))
	}
	return t.fail(a)
}

// podsAnswered follows the list of a node's pods and the reads of their claims. A due delete must follow
// within a time of the list. The ledger knows users from the list.
func podsAnswered(t Task, a Answer, s ledger.Snapshot) (Task, Move) {
	t, open, ok := listed(t, a, s)
	deletes := t.Step.Kind == rules.DeleteAttachment
	switch {
	case !ok:
		return t.fail(a)
	case open != nil:
		return t.send(*open)
	case wanted(s, t.Listed, t.Step.Volume) && deletes:
		return t.end(Stale, fmt.Sprintf("a pod of node %s wants the volume", t.Step.Node))
	case wanted(s, t.Listed, t.Step.Volume):
		return t.end(Finished, "")
	case deletes:
		return t, Move{Tell: []ledger.Event{unwanted(t.Step)}}
	}
	return t.end(Finished, "", unwanted(t.Step))
}

// listPods lists a node's pods. The earlier facts show which pods are new.
func (t Task) listPods(s ledger.Snapshot) (Task, Move) {
	t.Before = s
	return t.send(Request{Kind: rules.ListPods, Node: t.Step.Node})
}

func unwanted(step rules.Step) ledger.Event {
	return ledger.Unwanted{Volume: step.Volume, Node: step.Node, UID: step.UID, Version: step.Version}
}

// listed returns the next read needed to know whether a pod wants the volume; nil: it is known.
func listed(t Task, a Answer, s ledger.Snapshot) (Task, *Request, bool) {
	if a.Result != Done && (a.Result != NotFound || t.Sent.Kind == rules.ListPods) {
		return t, nil, false
	}
	if t.Sent.Kind == rules.ListPods {
		for _, e := range a.Facts {
			if pod, ok := e.(ledger.Pod); ok && pod.Phase != ledger.PodFinished {
				before := t.Before.Pod(pod.UID)
				t.Listed, t.Known = append(t.Listed, pod), append(t.Known, before != nil && before.Node != "")
			}
		}
		t.Before = ledger.Snapshot{}
	}
	already := t.hasRead()
	if pv, ok := t.unseen(s, already); ok {
		return t.open(readOf(PersistentVolumes, pv))
	}
	if r, ok := t.unfollowed(s, already); ok {
		return t.open(r)
	}
	if wanted(s, t.Listed, t.Step.Volume) {
		return t, nil, true
	}
	if pv, _ := first[ledger.PersistentVolume](a); pv.Claim != (ledger.ClaimKey{}) && t.names(pv.Claim) && !already.claim(pv.Claim) {
		return t.open(readOf(Claims, pv.Claim.String()))
	}
	if volume := s.Volume(t.Step.Volume); volume != nil && t.names(ledger.ClaimKey{}) {
		for _, pv := range volume.PVs() {
			if !already[readOf(PersistentVolumes, pv)] {
				return t.open(readOf(PersistentVolumes, pv))
			}
		}
	}
	return t, nil, true
}

// ReadOf is a read since the list of pods: one object, or all claims of the namespace Key.
type ReadOf struct {
	Object Object
	Key    string
	All    bool
}

func readOf(k Object, key string) ReadOf { return ReadOf{Object: k, Key: key} }

// open reads the objects to which the pods' claims may lead.
func (t Task) open(r ReadOf) (Task, *Request, bool) {
	t.Read = append(slices.Clip(t.Read), r)
	request := read(r.Object, r.Key)
	if r.All {
		request.Kind = rules.ListObjects
	}
	return t, &request, true
}

type reads map[ReadOf]bool

func (t Task) hasRead() reads {
	all := make(reads, len(t.Read))
	for _, r := range t.Read {
		all[r] = true
	}
	return all
}

func (r reads) claim(key ledger.ClaimKey) bool {
	return r.namespace(key.Namespace) || r[readOf(Claims, key.String())]
}

func (r reads) namespace(name string) bool { return r[ReadOf{Claims, name, true}] }

// names says whether a listed pod names a claim; for the zero key, any claim.
func (t Task) names(key ledger.ClaimKey) bool {
	for i := range t.Listed {
		for _, volume := range t.Listed[i].Volumes {
			if volume.Claim != "" && (key == ledger.ClaimKey{} || key == ledger.ClaimKey{Namespace: t.Listed[i].Namespace, Name: volume.Claim}) {
				return true
			}
		}
	}
	return false
}

// unseen is a PersistentVolume of a read claim that the caches lack.
func (t Task) unseen(s ledger.Snapshot, already reads) (string, bool) {
	if len(already) == 0 {
		return "", false
	}
	for i := range t.Listed {
		pod := &t.Listed[i]
		for _, volume := range pod.Volumes {
			key := ledger.ClaimKey{Namespace: pod.Namespace, Name: volume.Claim}
			if volume.Claim == "" || !already.claim(key) {
				continue
			}
			if claim := s.Claim(key); claim != nil && claim.PersistentVolume != "" && s.PersistentVolume(claim.PersistentVolume) == nil && !already[readOf(PersistentVolumes, claim.PersistentVolume)] {
				return claim.PersistentVolume, true
			}
		}
	}
	return "", false
}

// maxClaimReads bounds single reads of a namespace's claims; beyond, all are listed. Pods may name
// thousands of missing claims, and each volume that leaves would wait for each read.
const maxClaimReads = 16

// unfollowed is the next read for claims with an unknown lead, which may be newer than the caches and lead
// to any volume. A known claim that was made again is found from the volume's PersistentVolumes.
func (t Task) unfollowed(s ledger.Snapshot, already reads) (ReadOf, bool) {
	var first ledger.ClaimKey
	var others set[ledger.ClaimKey] // of its namespace
	for i := range t.Listed {
		pod := &t.Listed[i]
		if already.namespace(pod.Namespace) || first.Name != "" && first.Namespace != pod.Namespace {
			continue
		}
		for _, volume := range pod.Volumes {
			key := ledger.ClaimKey{Namespace: pod.Namespace, Name: volume.Claim}
			if volume.Claim == "" || others[key] || key == first || already.claim(key) || t.follows(s, i, volume) {
				continue
			}
			if first.Name == "" {
				first = key
				continue
			}
			if others.add(key); len(others) >= maxClaimReads {
				return ReadOf{Claims, key.Namespace, true}, true
			}
		}
	}
	return readOf(Claims, first.String()), first.Name != ""
}

// follows says whether the lead of a listed pod's volume is known.
func (t Task) follows(s ledger.Snapshot, pod int, volume ledger.PodVolume) bool {
	_, link := s.ResolvePod(&t.Listed[pod], volume)
	return t.Known[pod] && (link == ledger.LinkVolume || link == ledger.LinkNone)
}

func wanted(s ledger.Snapshot, pods []ledger.Pod, v ledger.VolumeID) bool {
	for i := range pods {
		if slices.Contains(s.PodAt(pods[i].UID), v) {
			return true
		}
		for _, volume := range pods[i].Volumes {
			if id, _ := s.ResolvePod(&pods[i], volume); id == v {
				return true
			}
		}
	}
	return false
}

// beginDelete deletes exactly the attachment of the proofs: under a rule of force after a read of the Node,
// with Within soon after a list of the node's pods.
func (m *Memory) beginDelete(t Task, s ledger.Snapshot, now time.Time) (Task, Move) {
	step := t.Step
	switch {
	case step.Within > 0 && t.Sent.Kind == 0:
		t.Until = now.Add(step.Within)
		return t.listPods(s)
	case step.Within > 0:
		if place := s.Volume(step.Volume).OnNode(step.Node); place == nil || place.Proof.Stage != ledger.ProofUnwanted {
			return t.end(Stale, fmt.Sprintf("a pod of node %s may want the volume", step.Node))
		}
		if !now.Before(t.Until) {
			return t.end(Failed, fmt.Sprintf("the API server took longer than %s", step.Within))
		}
	}
	if step.Rule != "" {
		return t.send(read(Nodes, string(step.Node)))
	}
	return m.drop(t)
}

// drop sends the DELETE. The attachment is no longer confirmed.
func (m *Memory) drop(t Task) (Task, Move) {
	delete(m.confirmed, t.Step.UID)
	return t.send(Request{
		Kind: rules.DeleteAttachment, Key: t.Step.Attachment, Volume: t.Step.Volume, Node: t.Step.Node, UID: t.Step.UID,
		Version: t.Step.Version,
	})
}

// deleteAnswered follows a deletion, and the reads before and after it.
func (m *Memory) deleteAnswered(t Task, a Answer, s ledger.Snapshot) (Task, Move) {
	switch {
	case t.Sent.Object == Nodes:
		return m.ruleAnswered(t, a, s)
	case t.Sent.Object == Attachments:
		return t.reread(a)
	case t.Sent.Kind != rules.DeleteAttachment:
		return podsAnswered(t, a, s)
	case a.Result == Done, a.Result == NotFound:
		return t.end(Finished, "")
	case a.Result == Conflict:
		return t.send(read(Attachments, t.Step.Attachment))
	}
	return t.fail(a)
}

// ruleAnswered follows the read of a Node before a forced deletion. It must be unchanged, or still missing,
// since the rule held, also by later watch events: a node known as Ready again is never forced, nor a
// former machine that its Node names again.
func (m *Memory) ruleAnswered(t Task, a Answer, s ledger.Snapshot) (Task, Move) {
	node, found := first[ledger.NodeState](a)
	switch now := s.Node(t.Step.Node); {
	case t.Step.Successor != "" && (now == nil || now.SystemUUID != t.Step.Successor):
		return t.end(Stale, fmt.Sprintf("the former machine of node %s may be back", t.Step.Node))
	case t.Step.Successor == "" && now != nil && now.Ready == ledger.ReadyTrue:
		return t.end(Stale, fmt.Sprintf("node %s is Ready again", t.Step.Node))
	case found && node.UID == t.Step.NodeUID && node.Version == t.Step.NodeVersion,
		a.Result == NotFound && t.Step.NodeUID == "":
		return m.drop(t)
	case found, a.Result == NotFound:
		return t.end(Stale, fmt.Sprintf("node %s is not as it was", t.Step.Node))
	}
	return t.fail(a)
}

// removeAnswered: the node must still be out of service.
func removeAnswered(t Task, a Answer) (Task, Move) {
	if t.Sent.Kind == rules.RemovePod {
		switch a.Result {
		case Done, NotFound, Conflict:
			return t.end(Finished, "")
		default:
			return t.fail(a)
		}
	}
	node, found := first[ledger.NodeState](a)
	switch {
	case node.OutOfService && node.Ready != ledger.ReadyTrue:
		return t.send(Request{Kind: rules.RemovePod, UID: t.Step.UID, Node: t.Step.Node})
	case found, a.Result == NotFound:
		return t.end(Stale, fmt.Sprintf("node %s is not out of service any more", t.Step.Node))
	}
	return t.fail(a)
}
