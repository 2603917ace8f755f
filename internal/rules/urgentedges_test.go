// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

var otherDisk = ledger.VolumeID{Driver: "d", Handle: "other"}

func otherThere() []ledger.Event {
	claim := ledger.ClaimKey{Namespace: "shop", Name: "other"}
	return []ledger.Event{
		ledger.PersistentVolume{Name: "pv-other", Version: "1", Volume: otherDisk, Access: ledger.AccessNode, Claim: claim},
		ledger.Claim{Key: claim, Version: "1", PersistentVolume: "pv-other", Bound: true},
		ledger.Pod{UID: "o", Version: "1", Namespace: "shop", Name: "o", Node: "well", Phase: ledger.PodLive, Volumes: []ledger.PodVolume{{Name: "v", Claim: "other"}}},
	}
}

func plansUnreport(t *testing.T, facts ...ledger.Event) (*planner, Step) {
	t.Helper()
	p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, append([]ledger.Event{alive, madeAt("well")}, facts...)...)
	place := p.at("well")
	p.detach(p.snapshot.Node("well"), place, place.Own(), "")
	if got := p.plan.Steps; len(got) != 1 || got[0].Kind != Unreport {
		t.Fatalf("planned: %+v", got)
	}
	return p, p.plan.Steps[0]
}

func TestRetractIsUrgent(t *testing.T) {
	p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, alive, nodeAs("well", reporting), dataAt("q", "well", ledger.PodLive))
	p.acquire(p.at("well"))
	if got := p.plan.Steps; len(got) != 1 || got[0].Kind != Unreport || !got[0].Urgent {
		t.Errorf("a pod waits for it, and it is planned as %+v", got)
	}
}

// It is checked when the node's last slot is taken, without an event about the volume.
func TestFullNodeWakesWhatIsPutOff(t *testing.T) {
	two := ledger.NodeDrivers{Node: "well", Version: "2", Drivers: []ledger.DriverOnNode{{Name: "d", Limit: 2}}}
	if _, step := plansUnreport(t, two); step.Urgent {
		t.Fatal("a slot is free")
	}
	p, step := plansUnreport(t, append([]ledger.Event{two}, otherThere()...)...)
	if !step.Urgent {
		t.Fatal("no slot is free, and it is not urgent")
	}
	if !slices.Contains(Spare(p.snapshot, "well"), disk) {
		t.Error("it has become urgent, and nobody wakes it")
	}
}

// The external-provisioner backs off while a VolumeAttachment exists.
func TestReleasedVolumeIsUrgent(t *testing.T) {
	if _, step := plansUnreport(t, ledger.ClaimGone{Key: ledger.ClaimKey{Namespace: "shop", Name: "data"}}); !step.Urgent {
		t.Error("the volume is to be deleted, and its Unreport is put off")
	}
}

// The PersistentVolume stays Released, since claimRef has the first UID.
func TestReleasedThoughAnotherClaimHasTheName(t *testing.T) {
	key := ledger.ClaimKey{Namespace: "shop", Name: "data"}
	_, step := plansUnreport(t,
		ledger.PersistentVolume{Name: "pv", Version: "2", Volume: disk, Access: ledger.AccessNode, Claim: key, ClaimUID: "first"},
		ledger.ClaimGone{Key: key},
		ledger.Claim{Key: key, UID: "second", Version: "9", PersistentVolume: "pv-2", Bound: true},
	)
	if !step.Urgent {
		t.Error("its claim is gone, and its Unreport is put off")
	}
}

// Another watch may have shown the phase Released before.
func TestClaimGoneTouchesTheVolume(t *testing.T) {
	l := ledger.New()
	key := ledger.ClaimKey{Namespace: "shop", Name: "data"}
	now := time.Unix(1000, 0)
	l.Apply(now, ledger.PersistentVolume{Name: "pv", Version: "1", Volume: disk, Access: ledger.AccessNode, Claim: key})
	l.Apply(now, ledger.Claim{Key: key, Version: "1", PersistentVolume: "pv", Bound: true})
	l.Apply(now, ledger.PersistentVolume{Name: "pv", Version: "2", Volume: disk, Access: ledger.AccessNode, Claim: key}) // Released
	if touched := l.Apply(now, ledger.ClaimGone{Key: key}); !slices.Contains(touched.Volumes, disk) {
		t.Errorf("the claim is gone, and only this is looked at: %+v", touched)
	}
}
