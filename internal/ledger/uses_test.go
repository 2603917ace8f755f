// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"slices"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

var (
	firstDisk  = ledger.VolumeID{Driver: "d", Handle: "first"}
	secondDisk = ledger.VolumeID{Driver: "d", Handle: "second"}
	dataClaim  = ledger.ClaimKey{Namespace: "ns", Name: "data"}
)

func boundPod(version string) ledger.Pod {
	return ledger.Pod{UID: "pod", Version: version, Namespace: "ns", Name: "pod", Node: "n1", Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}}
}

func claimOf(uid, version, pv string, lost bool) ledger.Claim {
	return ledger.Claim{Key: dataClaim, UID: uid, Version: version, PersistentVolume: pv, Bound: !lost, Lost: lost}
}

func pvOf(name, version string, v ledger.VolumeID) ledger.PersistentVolume {
	return ledger.PersistentVolume{Name: name, UID: name + version, Version: version, Volume: v, Access: ledger.AccessNode}
}

func attachmentAt(n ledger.NodeName, version string) ledger.Attachment {
	return ledger.Attachment{Name: ledger.AttachmentName(firstDisk, n), UID: "a-" + string(n), Version: version, Driver: "d", Node: n, PersistentVolume: "pv", Attached: true}
}

func inlineAt(n ledger.NodeName, version string) ledger.Attachment {
	a := attachmentAt(n, version)
	a.PersistentVolume, a.Inline = "", firstDisk
	return a
}

func secondAt(n ledger.NodeName, version string) ledger.Attachment {
	a := attachmentAt(n, version)
	a.Name = ledger.AttachmentName(secondDisk, n)
	return a
}

func secondHeldBy(version string, n ledger.NodeName, r ledger.Requester) ledger.HoldSeen {
	h := heldBy(version, n, r)
	h.Volume = secondDisk
	return h
}

func heldBy(version string, n ledger.NodeName, r ledger.Requester) ledger.HoldSeen {
	return ledger.HoldSeen{Volume: firstDisk, Hold: ledger.Hold{Version: version, Node: n, Requesters: []ledger.Requester{r}}}
}

// The claim or PersistentVolume has gone or was made again; also in a later process.
func TestPodUsesWhatItWasStartedWith(t *testing.T) {
	reported := ledger.NodeState{Name: "n1", UID: "n1", Version: "1", Reported: []ledger.VolumeID{firstDisk}}
	secondReported := ledger.NodeState{Name: "n1", UID: "n1", Version: "1", Reported: []ledger.VolumeID{secondDisk}}
	pod, complete := boundPod("9"), ledger.Complete{}
	requester := ledger.Requester{Namespace: "ns", Name: "pod", UID: "pod"}
	tests := map[string]struct {
		events []ledger.Event
		want   []ledger.VolumeID
	}{
		"the claim was made again": {[]ledger.Event{pvOf("pv", "1", firstDisk), pvOf("pv2", "1", secondDisk), claimOf("c1", "2", "pv", false), pod,
			ledger.ClaimGone{Key: dataClaim}, claimOf("c2", "3", "pv2", false)}, []ledger.VolumeID{firstDisk, secondDisk}},
		"so was the PersistentVolume, with another disk": {[]ledger.Event{pvOf("pv", "1", firstDisk), claimOf("c1", "2", "pv", false), pod,
			ledger.PersistentVolumeGone{Name: "pv"}, pvOf("pv", "4", secondDisk)}, []ledger.VolumeID{firstDisk, secondDisk}},
		"with storage that is never attached": {[]ledger.Event{pvOf("pv", "1", firstDisk), claimOf("c1", "2", "pv", false), pod,
			ledger.PersistentVolumeGone{Name: "pv"}, pvOf("pv", "4", ledger.VolumeID{})}, []ledger.VolumeID{firstDisk}},
		"and the pod has finished": {[]ledger.Event{pvOf("pv", "1", firstDisk), pvOf("pv2", "1", secondDisk), claimOf("c1", "2", "pv", false), pod,
			claimOf("c2", "3", "pv2", false), finished("10")}, nil},

		"a hold names it, of a claim that was made again": {[]ledger.Event{pvOf("pv2", "1", secondDisk), claimOf("c2", "3", "pv2", false), heldBy("4", "n1", requester), pod, complete},
			[]ledger.VolumeID{firstDisk, secondDisk}},
		"a hold names it, of a claim that is gone": {[]ledger.Event{heldBy("4", "n1", requester), pod, complete}, []ledger.VolumeID{firstDisk}},
		"holds of two disks name it":               {[]ledger.Event{heldBy("4", "n1", requester), secondHeldBy("4", "n1", requester), pod, complete}, []ledger.VolumeID{firstDisk, secondDisk}},
		"a hold that comes to its node":            {[]ledger.Event{pod, complete, heldBy("4", "n2", requester), heldBy("5", "n1", requester)}, []ledger.VolumeID{firstDisk}},
		"a hold that is seen late":                 {[]ledger.Event{pod, complete, heldBy("4", "n1", requester)}, []ledger.VolumeID{firstDisk}},
		"a pod that is seen late":                  {[]ledger.Event{complete, heldBy("4", "n1", requester), pod}, []ledger.VolumeID{firstDisk}},
		"a hold that lists it no more":             {[]ledger.Event{heldBy("4", "n1", requester), heldBy("5", "n1", ledger.Requester{UID: "other"}), pod}, nil},
		"a hold that has gone":                     {[]ledger.Event{heldBy("4", "n1", requester), ledger.HoldGone{Volume: firstDisk}, pod}, nil},
		"a hold at another node":                   {[]ledger.Event{pod, complete, heldBy("4", "n2", requester)}, nil},
		"a hold for a ticket of that UID":          {[]ledger.Event{pod, complete, heldBy("4", "n1", ledger.Requester{Ticket: true, Namespace: "ns", Name: "pod", UID: "pod"})}, nil},
		"a hold for a pod that has finished":       {[]ledger.Event{finished("10"), complete, heldBy("4", "n1", requester)}, nil},

		"an attachment is of a lost claim's PersistentVolume": {[]ledger.Event{reported, claimOf("c1", "2", "pv", true), attachmentAt("n1", "5"), pod, complete}, []ledger.VolumeID{firstDisk}},
		"of a bound claim's":                           {[]ledger.Event{reported, claimOf("c1", "2", "pv", false), attachmentAt("n1", "5"), pod, complete}, []ledger.VolumeID{firstDisk}},
		"the attachment is seen late":                  {[]ledger.Event{reported, claimOf("c1", "2", "pv", true), pod, complete, attachmentAt("n1", "5")}, []ledger.VolumeID{firstDisk}},
		"its disk is seen late":                        {[]ledger.Event{claimOf("c1", "2", "pv", true), attachmentAt("n1", "5"), pod, complete, reported}, []ledger.VolumeID{firstDisk}},
		"the claim is seen late":                       {[]ledger.Event{reported, attachmentAt("n1", "5"), pod, complete, claimOf("c1", "2", "pv", true)}, []ledger.VolumeID{firstDisk}},
		"the pod is seen late":                         {[]ledger.Event{reported, attachmentAt("n1", "5"), claimOf("c1", "2", "pv", true), complete, pod}, []ledger.VolumeID{firstDisk}},
		"the attachment is gone again":                 {[]ledger.Event{reported, attachmentAt("n1", "5"), claimOf("c1", "2", "pv", true), complete, pod, ledger.AttachmentGone{Name: ledger.AttachmentName(firstDisk, "n1")}}, []ledger.VolumeID{firstDisk}},
		"it is of another node":                        {[]ledger.Event{reported, claimOf("c1", "2", "pv", true), attachmentAt("n2", "5"), pod, complete}, nil},
		"it is of another PersistentVolume":            {[]ledger.Event{reported, claimOf("c1", "2", "other", true), attachmentAt("n1", "5"), pod, complete}, nil},
		"the PersistentVolume is another claim's":      {[]ledger.Event{reported, anothers(), claimOf("c1", "2", "pv", false), attachmentAt("n1", "5"), pod, complete}, nil},
		"it is another claim's, and has another disk":  {[]ledger.Event{reported, attachmentAt("n1", "5"), anothersDisk(secondDisk), claimOf("c1", "2", "pv", false), pod, complete}, nil},
		"the PersistentVolume has another disk by now": {[]ledger.Event{reported, attachmentAt("n1", "5"), claimOf("c1", "2", "pv", false), pod, pvOf("pv", "4", secondDisk), complete}, []ledger.VolumeID{secondDisk}},
		"the PersistentVolume had another disk for a while": {[]ledger.Event{reported, attachmentAt("n1", "5"), pvOf("pv", "4", secondDisk), ledger.PersistentVolumeGone{Name: "pv"},
			claimOf("c1", "2", "pv", false), pod, complete}, []ledger.VolumeID{firstDisk}},
		"it is of another disk, and the pod has used one": {[]ledger.Event{secondReported, pvOf("pv", "1", firstDisk), claimOf("c1", "2", "pv", false), pod, complete,
			ledger.PersistentVolumeGone{Name: "pv"}, secondAt("n1", "5")}, []ledger.VolumeID{firstDisk}},
		"it is of no PersistentVolume, and the lost claim names none": {[]ledger.Event{reported, inlineAt("n1", "5"), claimOf("c1", "2", "", true), pod, complete}, nil},
		"the claim is not bound, and names what is gone":              {[]ledger.Event{reported, attachmentAt("n1", "5"), ledger.Claim{Key: dataClaim, UID: "c1", Version: "2", PersistentVolume: "pv"}, pod, complete}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := ledger.New()
			for _, e := range test.events {
				l.Apply(time.Unix(1, 0), e)
			}
			var got []ledger.VolumeID
			for _, v := range []ledger.VolumeID{firstDisk, secondDisk} {
				if p := l.Snapshot().Volume(v).OnNode("n1"); p != nil && slices.Contains(p.Users, ledger.User{Pod: "pod"}) {
					got = append(got, v)
				}
				if slices.Contains(l.Snapshot().PodAt("pod"), v) != slices.Contains(got, v) {
					t.Errorf("PodAt says otherwise of %s than its users: %v", v, l.Snapshot().PodAt("pod"))
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("the pod uses %v, not %v", got, test.want)
			}
		})
	}
}

func finished(version string) ledger.Pod {
	p := boundPod(version)
	p.Phase = ledger.PodFinished
	return p
}

func anothers() ledger.PersistentVolume { return anothersDisk(firstDisk) }

func anothersDisk(v ledger.VolumeID) ledger.PersistentVolume {
	pv := pvOf("pv", "1", v)
	pv.Claim = ledger.ClaimKey{Namespace: "other", Name: "data"}
	return pv
}
