// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"fmt"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// unreported is the proof that a step has made. It says by which means: a proof
// by force is another one.
func unreported(step arbiter.Step) ledger.Event {
	return ledger.Unreported{Volume: step.Volume, Node: step.Node, UID: step.UID, Version: step.Version, Forced: step.Rule != "", Doubted: step.Doubted}
}

// absentAnswered follows the read of a Node whose volumesAttached is another
// controller's to write: it proves that the volume is neither in use nor
// reported there.
func absentAnswered(t Task, a Answer) (Task, Move) {
	node, found := first[ledger.NodeState](a)
	switch {
	case found && absent(node, t.Step), a.Result == NotFound && t.Step.NodeUID == "":
		return t.end(Finished, "", unreported(t.Step))
	case found, a.Result == NotFound:
		return t.end(Stale, fmt.Sprintf("node %s is not as it was", t.Step.Node))
	}
	return t.fail(a)
}

// podsAnswered follows the list of a node's pods, and the reads of claims that
// it takes. It tells the ledger that nobody wants the volume there, and where it is
// to be deleted within a time of the list, that follows; who wants it is known to
// the ledger from the list.
func podsAnswered(t Task, a Answer, s ledger.Snapshot) (Task, Move) {
	t, open, ok := listed(t, a, s)
	deletes := t.Step.Do == arbiter.DeleteAttachment
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

// listPods lists a node's pods. What was known of them before tells which are
// news.
func (t Task) listPods(s ledger.Snapshot) (Task, Move) {
	t.Before = s
	return t.send(Request{Do: ListPods, Node: t.Step.Node})
}

func unwanted(step arbiter.Step) ledger.Event {
	return ledger.Unwanted{Volume: step.Volume, Node: step.Node, UID: step.UID, Version: step.Version}
}

// listed takes a list of pods, or the read of what their claims may lead to, and
// returns the next read that it takes to know whether one of them wants the
// volume; nil: it is known.
func listed(t Task, a Answer, s ledger.Snapshot) (Task, *Request, bool) {
	if a.Result != Done && (a.Result != NotFound || t.Sent.Do == ListPods) {
		return t, nil, false
	}
	if t.Sent.Do == ListPods {
		for _, e := range a.Facts {
			if pod, ok := e.(ledger.Pod); ok && pod.Phase != ledger.PodFinished {
				before := t.Before.Pod(pod.UID)
				t.Listed, t.Known = append(t.Listed, pod), append(t.Known, before != nil && before.Node != "")
			}
		}
		t.Before = ledger.Snapshot{}
	}
	if claim, _ := first[ledger.Claim](a); claim.PersistentVolume != "" && s.PersistentVolume(claim.PersistentVolume) == nil {
		return t.open(PersistentVolumes, claim.PersistentVolume)
	}
	if key, ok := t.unfollowed(s); ok {
		return t.open(Claims, key)
	}
	if wanted(s, t.Listed, t.Step.Volume) {
		return t, nil, true
	}
	if pv, _ := first[ledger.PersistentVolume](a); pv.Claim != (ledger.ClaimKey{}) && t.names(pv.Claim) && !t.read(Claims, pv.Claim.String()) {
		return t.open(Claims, pv.Claim.String())
	}
	if volume := s.Volume(t.Step.Volume); volume != nil && t.names(ledger.ClaimKey{}) {
		for _, pv := range volume.PVs() {
			if !t.read(PersistentVolumes, pv) {
				return t.open(PersistentVolumes, pv)
			}
		}
	}
	return t, nil, true
}

// open reads an object that the pods' claims may lead to.
func (t Task) open(k Kind, key string) (Task, *Request, bool) {
	r := read(k, key)
	t.Read = append(slices.Clip(t.Read), r)
	return t, &r, true
}

// read says whether an object was read since the list.
func (t Task) read(k Kind, key string) bool {
	return slices.ContainsFunc(t.Read, func(r Request) bool { return r.Kind == k && r.Key == key })
}

// names says whether a pod of the list names a claim; of the zero key, whether any
// names one.
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

// unfollowed is the next claim to read of which it is not known where it leads:
// the caches can't follow it, or its pod was not known to be bound before the list.
// They may be newer than the caches, and lead to any volume. A claim that the
// caches know, and that was deleted and made again since, is found from the other
// side: by the volume's PersistentVolumes, and the claims that these are bound to.
func (t Task) unfollowed(s ledger.Snapshot) (string, bool) {
	for i := range t.Listed {
		pod := &t.Listed[i]
		for _, volume := range pod.Volumes {
			key := ledger.ClaimKey{Namespace: pod.Namespace, Name: volume.Claim}.String()
			_, link := s.ResolvePod(pod, volume)
			followed := t.Known[i] && (link == ledger.LinkVolume || link == ledger.LinkNone)
			if volume.Claim != "" && !followed && !t.read(Claims, key) {
				return key, true
			}
		}
	}
	return "", false
}

// wanted says whether one of the unfinished pods wants a volume.
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

// beginDelete deletes exactly the attachment that the proofs are about: under a
// rule of force after a read of the Node; with Within after one more list of the
// node's pods, and within that time of it.
func (m *Memory) beginDelete(t Task, s ledger.Snapshot, now time.Time) (Task, Move) {
	step := t.Step
	switch {
	case step.Within > 0 && t.Sent.Do == 0:
		t.Until = now.Add(step.Within)
		return t.listPods(s)
	case step.Within > 0:
		if place := s.Volume(step.Volume).NodeVolume(step.Node); place == nil || place.Proof.Stage != ledger.ProofUnwanted {
			return t.end(Stale, fmt.Sprintf("a pod of node %s may want the volume", step.Node))
		}
		if !now.Before(t.Until) {
			return t.end(Failed, fmt.Sprintf("the API server took longer than %s", step.Within))
		}
	}
	if step.Rule != "" { //mutant:no-read-before-force
		return t.send(read(Nodes, string(step.Node)))
	}
	return m.drop(t)
}

// drop sends the DELETE. From then on the attachment is not confirmed any more.
func (m *Memory) drop(t Task) (Task, Move) {
	delete(m.confirmed, t.Step.UID)
	return t.send(Request{
		Do: DropAttachment, Key: t.Step.Attachment, Volume: t.Step.Volume, Node: t.Step.Node, UID: t.Step.UID,
		Version: t.Step.Version, //mutant:delete-any-version
	})
}

// deleteAnswered follows a deletion, and the reads before and after it.
func (m *Memory) deleteAnswered(t Task, a Answer, s ledger.Snapshot) (Task, Move) {
	switch {
	case t.Sent.Kind == Nodes:
		return m.ruleAnswered(t, a, s)
	case t.Sent.Kind == Attachments:
		return t.reread(a)
	case t.Sent.Do != DropAttachment:
		return podsAnswered(t, a, s)
	case a.Result == Done, a.Result == NotFound:
		return t.end(Finished, "")
	case a.Result == Conflict:
		return t.send(read(Attachments, t.Step.Attachment))
	}
	return t.fail(a)
}

// ruleAnswered follows the read of a Node before a forced deletion. It must be as
// it was when the rule was found to hold, or not exist where there was none, also by
// what a watch has shown since: a node that is known to be Ready again is never forced, nor
// a former machine that its Node names again.
func (m *Memory) ruleAnswered(t Task, a Answer, s ledger.Snapshot) (Task, Move) {
	node, found := first[ledger.NodeState](a)
	switch now := s.Node(t.Step.Node); {
	case t.Step.Former != "" && (now == nil || now.SystemUUID == t.Step.Former):
		return t.end(Stale, fmt.Sprintf("the former machine of node %s may be back", t.Step.Node))
	case t.Step.Former == "" && now != nil && now.Ready == ledger.ReadyTrue:
		return t.end(Stale, fmt.Sprintf("node %s is Ready again", t.Step.Node))
	case found && node.UID == t.Step.NodeUID && node.Version == t.Step.NodeVersion,
		a.Result == NotFound && t.Step.NodeUID == "":
		return m.drop(t)
	case found, a.Result == NotFound:
		return t.end(Stale, fmt.Sprintf("node %s is not as it was", t.Step.Node))
	}
	return t.fail(a)
}

// removeAnswered follows the removal of a pod from a node that is out of service,
// and the read before it: the node must still be.
func removeAnswered(t Task, a Answer) (Task, Move) {
	if t.Sent.Do == RemovePod {
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
		return t.send(Request{Do: RemovePod, UID: t.Step.UID, Node: t.Step.Node})
	case found, a.Result == NotFound:
		return t.end(Stale, fmt.Sprintf("node %s is not out of service any more", t.Step.Node))
	}
	return t.fail(a)
}
