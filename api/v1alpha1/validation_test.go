// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
)

func asManual(v *v1alpha1.VolumeTicket) {
	v.Spec.Type, v.Spec.TTLSeconds = v1alpha1.TicketManual, new(int64(60))
}

func TestTicketValidation(t *testing.T) {
	ticketCRD := loadCRDs(t)[v1alpha1.KindVolumeTicket]
	tests := []struct {
		name   string
		change func(*v1alpha1.VolumeTicket)
		// no wants: admitted
		wants []string
	}{
		{name: "a person's, with an owner", change: func(*v1alpha1.VolumeTicket) {}},
		{name: "a person's", change: asManual},
		{name: "wherever", change: func(v *v1alpha1.VolumeTicket) { asManual(v); v.Spec.NodeName, v.Spec.Wherever = "", true }},
		{name: "no node", change: func(v *v1alpha1.VolumeTicket) { asManual(v); v.Spec.NodeName = "" },
			wants: []string{"set spec.nodeName, or spec.wherever to true, or spec.detached to true, and exactly one of them"}},
		{name: "a node and wherever", change: func(v *v1alpha1.VolumeTicket) { asManual(v); v.Spec.Wherever = true },
			wants: []string{"set spec.nodeName, or spec.wherever to true, or spec.detached to true, and exactly one of them"}},
		{name: "a migration, wherever", change: func(v *v1alpha1.VolumeTicket) {
			asManual(v)
			v.Spec.Type, v.Spec.NodeName, v.Spec.Wherever = v1alpha1.TicketLiveMigration, "", true
		}, wants: []string{"a ticket of type LiveMigration"}},
		{name: "a migration, detached", change: func(v *v1alpha1.VolumeTicket) {
			asManual(v)
			v.Spec.Type, v.Spec.NodeName, v.Spec.Detached = v1alpha1.TicketLiveMigration, "", true
		}, wants: []string{"a ticket of type LiveMigration"}},
		{name: "detached", change: func(v *v1alpha1.VolumeTicket) { asManual(v); v.Spec.NodeName, v.Spec.Detached = "", true }},
		{name: "a node and detached", change: func(v *v1alpha1.VolumeTicket) { asManual(v); v.Spec.Detached = true },
			wants: []string{"exactly one of them"}},
		{name: "wherever and detached", change: func(v *v1alpha1.VolumeTicket) {
			asManual(v)
			v.Spec.NodeName, v.Spec.Wherever, v.Spec.Detached = "", true, true
		}, wants: []string{"exactly one of them"}},
		{name: "a share, detached", change: func(v *v1alpha1.VolumeTicket) {
			asManual(v)
			v.Spec.Type, v.Spec.NodeName, v.Spec.Detached = v1alpha1.TicketShareManager, "", true
		}, wants: []string{"a share is served from a node"}},
		{name: "parameters", change: func(v *v1alpha1.VolumeTicket) {
			asManual(v)
			v.Spec.Parameters = map[string]string{"disableFrontend": "true", strings.Repeat("k", 63): strings.Repeat("v", 256), "empty": ""}
		}},
		{name: "detached with parameters", change: func(v *v1alpha1.VolumeTicket) {
			asManual(v)
			v.Spec.NodeName, v.Spec.Detached, v.Spec.Parameters = "", true, map[string]string{"a": "b"}
		}, wants: []string{"out of a ticket with spec.detached"}},
		{name: "a parameter with too long a key", change: func(v *v1alpha1.VolumeTicket) {
			asManual(v)
			v.Spec.Parameters = map[string]string{strings.Repeat("k", 64): ""}
		}, wants: []string{"a key has 1 to 63 characters"}},
		{name: "a parameter with too long a value", change: func(v *v1alpha1.VolumeTicket) {
			asManual(v)
			v.Spec.Parameters = map[string]string{"k": strings.Repeat("v", 257)}
		}, wants: []string{"a value at most 256"}},
		{name: "too many parameters", change: func(v *v1alpha1.VolumeTicket) {
			asManual(v)
			v.Spec.Parameters = map[string]string{}
			for i := range 17 {
				v.Spec.Parameters[fmt.Sprint(i)] = ""
			}
		}, wants: []string{"spec.parameters", "16"}},
		{name: "no type", change: func(v *v1alpha1.VolumeTicket) { v.Spec.Type = "" },
			wants: []string{"spec.type", "Restore"}},
		{name: "unknown type", change: func(v *v1alpha1.VolumeTicket) { v.Spec.Type = "Urgent" },
			wants: []string{"spec.type", "Restore"}},
		{name: "no volumes", change: func(v *v1alpha1.VolumeTicket) { v.Spec.Volumes = nil },
			wants: []string{"spec.volumes"}},
		{name: "empty volumes", change: func(v *v1alpha1.VolumeTicket) { v.Spec.Volumes = []v1alpha1.TicketVolume{} },
			wants: []string{"spec.volumes", "at least 1"}},
		{name: "a volume that names nothing", change: func(v *v1alpha1.VolumeTicket) { v.Spec.Volumes = []v1alpha1.TicketVolume{{}} },
			wants: []string{"spec.volumes", "name either claim or persistentVolume"}},
		{name: "a volume that names two", change: func(v *v1alpha1.VolumeTicket) { v.Spec.Volumes[0].PersistentVolume = "cache" },
			wants: []string{"spec.volumes", "name either claim or persistentVolume"}},
		{name: "a volume twice", change: func(v *v1alpha1.VolumeTicket) {
			v.Spec.Volumes = append(v.Spec.Volumes, v.Spec.Volumes[0])
		}, wants: []string{"spec.volumes", "each volume once"}},
		{name: "a claim twice, under two UIDs", change: func(v *v1alpha1.VolumeTicket) {
			v.Spec.Volumes = append(v.Spec.Volumes, v1alpha1.TicketVolume{Claim: &v1alpha1.ClaimReference{Name: "data", UID: "other"}})
		}, wants: []string{"spec.volumes", "each volume once"}},
		{name: "a claim without a name", change: func(v *v1alpha1.VolumeTicket) { v.Spec.Volumes[0].Claim.Name = "" },
			wants: []string{"claim.name"}},
		{name: "ttl of nothing", change: func(v *v1alpha1.VolumeTicket) {
			v.Spec.Type, v.Spec.TTLSeconds = v1alpha1.TicketManual, new(int64(0))
		}, wants: []string{"spec.ttlSeconds"}},
		{name: "the most volumes there can be", change: func(v *v1alpha1.VolumeTicket) { v.Spec.Volumes = volumes(256) }},
		{name: "more volumes than a node can have", change: func(v *v1alpha1.VolumeTicket) { v.Spec.Volumes = volumes(257) },
			wants: []string{"spec.volumes", "256"}},
		{name: "two conditions of one type", change: func(v *v1alpha1.VolumeTicket) {
			condition := metav1.Condition{Type: v1alpha1.TicketGranted, Status: metav1.ConditionTrue, Reason: "Granted", LastTransitionTime: metav1.Unix(1, 0)}
			v.Status.Conditions = []metav1.Condition{condition, condition}
		}, wants: []string{"status.conditions[1]", "Duplicate"}},
		{name: "a status volume twice", change: func(v *v1alpha1.VolumeTicket) {
			v.Status.Volumes = []v1alpha1.TicketVolumeStatus{{Claim: "data"}, {Claim: "data", Transitions: 7}}
		}, wants: []string{"status.volumes[1]", "Duplicate"}},
		{name: "status volumes named in each way", change: func(v *v1alpha1.VolumeTicket) {
			v.Status.Volumes = []v1alpha1.TicketVolumeStatus{{Claim: "data"}, {PersistentVolume: "data"}}
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ticket := manualTicket()
			test.change(ticket)
			checkRefusal(t, ticketCRD.admit(asMap(t, ticket), nil).ToAggregate(), test.wants)
		})
	}
}

func TestTicketSpecNeverChanges(t *testing.T) {
	ticketCRD := loadCRDs(t)[v1alpha1.KindVolumeTicket]
	for name, change := range map[string]func(*v1alpha1.VolumeTicket){
		"node":   func(v *v1alpha1.VolumeTicket) { v.Spec.NodeName = "worker-3" },
		"volume": func(v *v1alpha1.VolumeTicket) { v.Spec.Volumes[0].Claim.Name = "other" },
		"uid":    func(v *v1alpha1.VolumeTicket) { v.Spec.Volumes[0].Claim.UID = "" },
		"type":   func(v *v1alpha1.VolumeTicket) { v.Spec.Type = v1alpha1.TicketUpgrade },
		"more":   func(v *v1alpha1.VolumeTicket) { v.Spec.Parameters = map[string]string{"a": "b"} },
	} {
		changed := manualTicket()
		change(changed)
		err := ticketCRD.admit(asMap(t, changed), asMap(t, manualTicket())).ToAggregate()
		t.Run(name, func(t *testing.T) { checkRefusal(t, err, []string{"delete the ticket and create another one"}) })
	}
	granted := manualTicket()
	granted.Status.Epoch = 3
	if err := ticketCRD.admit(asMap(t, granted), asMap(t, manualTicket())).ToAggregate(); err != nil {
		t.Errorf("a change of status is refused: %v", err)
	}
}

func TestHoldValidation(t *testing.T) {
	holdCRD := loadCRDs(t)[v1alpha1.KindVolumeHold]
	tests := []struct {
		name   string
		change func(*v1alpha1.VolumeHold)
		wants  []string
	}{
		{name: "held and promised", change: func(*v1alpha1.VolumeHold) {}},
		{name: "free", change: func(v *v1alpha1.VolumeHold) { v.Status = v1alpha1.VolumeHoldStatus{} }},
		{name: "no driver", change: func(v *v1alpha1.VolumeHold) { v.Spec.Driver = "" }, wants: []string{"spec.driver"}},
		{name: "no handle", change: func(v *v1alpha1.VolumeHold) { v.Spec.Handle = "" }, wants: []string{"spec.handle"}},
		{name: "as long a handle as volumes may have", change: func(v *v1alpha1.VolumeHold) {
			v.Spec.Driver, v.Spec.Handle = strings.Repeat("d", v1alpha1.MaxDriverLength), strings.Repeat("ä", v1alpha1.MaxHandleLength)
		}},
		{name: "too long a handle", change: func(v *v1alpha1.VolumeHold) { v.Spec.Handle = strings.Repeat("x", v1alpha1.MaxHandleLength+1) },
			wants: []string{"spec.handle"}},
		{name: "too long a driver", change: func(v *v1alpha1.VolumeHold) { v.Spec.Driver = strings.Repeat("x", v1alpha1.MaxDriverLength+1) },
			wants: []string{"spec.driver"}},
		{name: "kept from every node", change: func(v *v1alpha1.VolumeHold) { v.Status.Holder.Node, v.Status.Next.Node = "", "" }},
		{name: "a requester twice", change: func(v *v1alpha1.VolumeHold) {
			v.Status.Holder.Requesters = append(v.Status.Holder.Requesters, v.Status.Holder.Requesters[0])
		}, wants: []string{"status.holder.requesters[1]", "Duplicate"}},
		{name: "a PersistentVolume twice", change: func(v *v1alpha1.VolumeHold) {
			v.Status.PersistentVolumes = []string{"pv-7", "pv-7"}
		}, wants: []string{"status.persistentVolumes[1]", "Duplicate"}},
		{name: "a rule of its own", change: func(v *v1alpha1.VolumeHold) {
			v.Status.ForceDetach = &v1alpha1.ForceDetachProgress{Rule: "Impatience"}
		}, wants: []string{"status.forceDetach.rule", "OutOfService"}},
		{name: "negative transitions", change: func(v *v1alpha1.VolumeHold) { v.Status.Transitions = -1 },
			wants: []string{"status.transitions"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			hold := heldVolume()
			test.change(hold)
			checkRefusal(t, holdCRD.admit(asMap(t, hold), nil).ToAggregate(), test.wants)
		})
	}
	moved := heldVolume()
	moved.Spec.Handle = "vol-2"
	checkRefusal(t, holdCRD.admit(asMap(t, moved), asMap(t, heldVolume())).ToAggregate(), []string{"one volume for ever"})
}

// A kubelet may report any systemUUID and bootID. If the hold were refused, it would be written for ever.
func TestHoldOfAnOddMachineIsAdmitted(t *testing.T) {
	holdCRD := loadCRDs(t)[v1alpha1.KindVolumeHold]
	disk := ledger.VolumeID{Driver: "disk.example.com", Handle: "vol-1"}
	seen := map[string]string{}
	for name, said := range map[string]string{
		"as usual":           "5b0d2c1e-7f62-4a0c-9a53-1f3d8e2b7c10",
		"as long as fits":    strings.Repeat("x", 128),
		"longer":             strings.Repeat("x", 129),
		"another such":       strings.Repeat("x", 129) + "y",
		"huge":               strings.Repeat("ä", 1<<16),
		"not UTF-8":          "boot\xff",
		"another such bytes": "boot\xfe",
		"the ledger's own":   ledger.OtherMachine,
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1", UID: "n1"}}
		node.Status.NodeInfo = corev1.NodeSystemInfo{SystemUUID: said, BootID: said}
		fact := convert.Node(node)
		if other, twice := seen[fact.BootID]; twice {
			t.Errorf("%s: the boot is %q, as that of %s", name, fact.BootID, other)
		}
		seen[fact.BootID] = name
		if fact.SystemUUID == ledger.OtherMachine {
			t.Errorf("%s: the machine is one of several", name)
		}
		is := ledger.Hold{
			Node: "worker-1", NodeUID: fact.UID, BootID: fact.BootID, SystemUUID: fact.SystemUUID, Transitions: 1, State: ledger.HoldHeld,
			Fences: []ledger.Fence{{Node: "worker-1", NodeUID: fact.UID, BootID: fact.BootID, SystemUUID: fact.SystemUUID, InUse: true}},
		}
		written := convert.HoldObject(convert.HoldContext{Volume: disk, Now: time.Unix(1, 0)}, is)
		text, err := json.Marshal(written)
		if err != nil {
			t.Fatal(err)
		}
		stored := &v1alpha1.VolumeHold{}
		if err := json.Unmarshal(text, stored); err != nil {
			t.Fatal(err)
		}
		stored.TypeMeta = typeMeta(v1alpha1.KindVolumeHold)
		if err := holdCRD.admit(asMap(t, stored), nil).ToAggregate(); err != nil {
			t.Errorf("%s: the hold is refused: %.200v", name, err)
		}
		if back := convert.Hold(stored).Hold; !reflect.DeepEqual(back, is) {
			t.Errorf("%s: the hold comes back as\n%+v, written was\n%+v", name, back, is)
		}
	}
}

func TestPolicyValidation(t *testing.T) {
	policyCRD := loadCRDs(t)[v1alpha1.KindAttachPolicy]
	duration := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	tests := []struct {
		name   string
		change func(*v1alpha1.AttachPolicySpec)
		wants  []string
	}{
		{name: "nothing but the driver", change: func(*v1alpha1.AttachPolicySpec) {}},
		{name: "the defaults", change: func(s *v1alpha1.AttachPolicySpec) { *s = s.WithDefaults() }},
		{name: "no driver", change: func(s *v1alpha1.AttachPolicySpec) { s.Driver = "" }, wants: []string{"spec.driver"}},
		{name: "a driver that can't be", change: func(s *v1alpha1.AttachPolicySpec) { s.Driver = "Bad Driver!" }, wants: []string{"spec.driver", "kubectl get csidrivers"}},
		{name: "a plugin", change: func(s *v1alpha1.AttachPolicySpec) { s.Driver = "kubernetes.io/iscsi" }},
		{name: "a driver in capitals", change: func(s *v1alpha1.AttachPolicySpec) { s.Driver = "Disk_2.example.com" }},
		{name: "negative delay", change: func(s *v1alpha1.AttachPolicySpec) { s.DetachDelay = duration(-time.Second) },
			wants: []string{"spec.detachDelay", "such as 90s"}},
		{name: "delay for ever", change: func(s *v1alpha1.AttachPolicySpec) { s.DetachDelay = duration(25 * time.Hour) },
			wants: []string{"spec.detachDelay", "choose a shorter one"}},
		{name: "forced at once", change: func(s *v1alpha1.AttachPolicySpec) {
			s.ForceDetach = &v1alpha1.ForceDetachPolicy{AfterPodGone: "0s"}
		}, wants: []string{"spec.forceDetach.afterPodGone", "leave it out"}},
		{name: "forced some time", change: func(s *v1alpha1.AttachPolicySpec) {
			s.ForceDetach = &v1alpha1.ForceDetachPolicy{AfterPodGone: "never"}
		}, wants: []string{"spec.forceDetach.afterPodGone", "write Never, or a duration"}},
		{name: "never forced", change: func(s *v1alpha1.AttachPolicySpec) {
			s.ForceDetach = &v1alpha1.ForceDetachPolicy{AfterPodGone: v1alpha1.ForceDetachNever}
		}},
		{name: "never forced, and forced", change: func(s *v1alpha1.AttachPolicySpec) {
			s.ForceDetach = &v1alpha1.ForceDetachPolicy{AfterPodGone: v1alpha1.ForceDetachNever, AfterUnreachable: duration(time.Minute)}
		}, wants: []string{"spec.forceDetach", "leave out afterUnreachable"}},
		{name: "forced by either time", change: func(s *v1alpha1.AttachPolicySpec) {
			s.ForceDetach = &v1alpha1.ForceDetachPolicy{AfterPodGone: "1h", AfterUnreachable: duration(time.Minute)}
		}},
		{name: "unreachable for a moment", change: func(s *v1alpha1.AttachPolicySpec) {
			s.ForceDetach = &v1alpha1.ForceDetachPolicy{AfterUnreachable: duration(time.Second)}
		}, wants: []string{"spec.forceDetach.afterUnreachable", "1m or more"}},
		{name: "no workers", change: func(s *v1alpha1.AttachPolicySpec) { s.Workers = new(int32(0)) }, wants: []string{"spec.workers"}},
		{name: "negative slots", change: func(s *v1alpha1.AttachPolicySpec) { s.Slots = &v1alpha1.SlotPolicy{Max: new(int32(-1))} },
			wants: []string{"spec.slots.max"}},
		{name: "of a class", change: func(s *v1alpha1.AttachPolicySpec) {
			s.StorageClassName, s.DetachDelay = "fast", duration(time.Minute)
		}},
		{name: "slots of a class", change: func(s *v1alpha1.AttachPolicySpec) {
			s.StorageClassName, s.Slots = "fast", &v1alpha1.SlotPolicy{Headroom: new(int32(1))}
		}, wants: []string{"a policy without storageClassName"}},
		{name: "workers of a class", change: func(s *v1alpha1.AttachPolicySpec) { s.StorageClassName, s.Workers = "fast", new(int32(1)) },
			wants: []string{"a policy without storageClassName"}},
		{name: "operations", change: func(s *v1alpha1.AttachPolicySpec) {
			s.AttachFor, s.DetachFor = operations("Snapshot", "Clone"), operations("Expansion")
		}},
		{name: "no operations of a class", change: func(s *v1alpha1.AttachPolicySpec) { s.StorageClassName, s.AttachFor = "fast", operations() }},
		{name: "an operation twice", change: func(s *v1alpha1.AttachPolicySpec) { s.AttachFor = operations("Clone", "Clone") }, wants: []string{"spec.attachFor"}},
		{name: "attached and detached", change: func(s *v1alpha1.AttachPolicySpec) {
			s.AttachFor, s.DetachFor = operations("Clone", "Snapshot"), operations("Expansion", "Snapshot")
		}, wants: []string{"attachFor or in detachFor, and not in both"}},
		{name: "no such operation", change: func(s *v1alpha1.AttachPolicySpec) { s.DetachFor = operations("Backup") }, wants: []string{"spec.detachFor", "Expansion"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			policy := &v1alpha1.AttachPolicy{
				TypeMeta:   typeMeta(v1alpha1.KindAttachPolicy),
				ObjectMeta: metav1.ObjectMeta{Name: "disk"},
				Spec:       v1alpha1.AttachPolicySpec{Driver: "disk.example.com"},
			}
			test.change(&policy.Spec)
			checkRefusal(t, policyCRD.admit(asMap(t, policy), nil).ToAggregate(), test.wants)
		})
	}
}

// A duration that the Go type can't read would break every informer of the kind.
func TestPolicyDurationsAreReadable(t *testing.T) {
	policyCRD := loadCRDs(t)[v1alpha1.KindAttachPolicy]
	for _, text := range []string{"", "soon", "5", "1 second", "1d", "PT5M", "9999999999h"} {
		obj := map[string]any{
			"apiVersion": v1alpha1.SchemeGroupVersion.String(), "kind": v1alpha1.KindAttachPolicy,
			"metadata": map[string]any{"name": "disk"},
			"spec":     map[string]any{"driver": "disk.example.com", "detachDelay": text},
		}
		wants := []string{"such as 90s or 1h30m"}
		if text == "9999999999h" { // more than a duration can hold
			wants = []string{"spec.detachDelay"}
		}
		checkRefusal(t, policyCRD.admit(obj, nil).ToAggregate(), wants)
	}
}

func TestNodeMountReportValidation(t *testing.T) {
	definition := loadCRDs(t)[v1alpha1.KindNodeMountReport]
	for name, test := range map[string]struct {
		change func(*v1alpha1.NodeMountReport)
		wants  []string
	}{
		"as it is":          {func(*v1alpha1.NodeMountReport) {}, nil},
		"another answer":    {func(n *v1alpha1.NodeMountReport) { n.Status.Volumes[0].Staged = "Maybe" }, []string{"status.volumes[0].staged", "Unknown"}},
		"another mode":      {func(n *v1alpha1.NodeMountReport) { n.Status.Volumes[0].Mode = "Object" }, []string{"status.volumes[0].mode"}},
		"a path twice":      {func(n *v1alpha1.NodeMountReport) { n.Status.Volumes[1].Path = n.Status.Volumes[0].Path }, []string{"status.volumes[1]", "Duplicate"}},
		"a look below zero": {func(n *v1alpha1.NodeMountReport) { n.Spec.Look = -1 }, []string{"spec.look"}},
		"too many": {func(n *v1alpha1.NodeMountReport) {
			for i := range v1alpha1.MaxReportedVolumes {
				n.Status.Volumes = append(n.Status.Volumes, v1alpha1.ReportedVolume{Path: fmt.Sprint(i), Mode: "Block", Staged: v1alpha1.NodeNo, Mounted: v1alpha1.NodeNo})
			}
		}, []string{"status.volumes", "512"}},
	} {
		t.Run(name, func(t *testing.T) {
			object := nodeMountReport()
			test.change(object)
			checkRefusal(t, definition.admit(asMap(t, object), nil).ToAggregate(), test.wants)
		})
	}
}

func manualTicket() *v1alpha1.VolumeTicket {
	return &v1alpha1.VolumeTicket{
		TypeMeta:   typeMeta(v1alpha1.KindVolumeTicket),
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "6f1c"},
		Spec: v1alpha1.VolumeTicketSpec{
			Type: v1alpha1.TicketManual, NodeName: "worker-2",
			Volumes: []v1alpha1.TicketVolume{{Claim: &v1alpha1.ClaimReference{Name: "data", UID: "41d3"}}},
		},
	}
}

func heldVolume() *v1alpha1.VolumeHold {
	return &v1alpha1.VolumeHold{
		TypeMeta:   typeMeta(v1alpha1.KindVolumeHold),
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.VolumeHoldName("disk.example.com", "vol-1")},
		Spec:       v1alpha1.VolumeHoldSpec{Driver: "disk.example.com", Handle: "vol-1"},
		Status: v1alpha1.VolumeHoldStatus{
			PersistentVolumes: []string{"pv-7"},
			Holder: &v1alpha1.Holder{Node: "worker-1", NodeUID: "n1", Requesters: []v1alpha1.TicketReference{
				{Kind: v1alpha1.TicketKindPod, Namespace: "shop", Name: "db-0", UID: "p0"}}},
			Next: &v1alpha1.NextHolder{Node: "worker-2", Ticket: v1alpha1.TicketReference{
				Kind: v1alpha1.TicketKindVolumeTicket, Namespace: "shop", Name: "6f1c", UID: "t1"}},
			Transitions: 7,
			ForceDetach: &v1alpha1.ForceDetachProgress{Rule: v1alpha1.ForceDetachAfterPodGone, ElapsedSeconds: 12},
			Summary: &v1alpha1.HoldSummary{Volume: "pv-7", Claim: "shop/data", Holder: "shop/db-0",
				State: v1alpha1.HoldStateDetachPending, Waiting: "shop/db-1 at worker-2"},
		},
	}
}

func nodeMountReport() *v1alpha1.NodeMountReport {
	seen := metav1.Unix(1, 0)
	return &v1alpha1.NodeMountReport{
		TypeMeta:   typeMeta(v1alpha1.KindNodeMountReport),
		ObjectMeta: metav1.ObjectMeta{Name: "worker-1"},
		Spec:       v1alpha1.NodeMountReportSpec{Look: 3},
		Status: v1alpha1.NodeMountReportStatus{
			Looked: 3, Observed: &seen, NodeUID: "n1", BootID: "b1", SystemUUID: "s1",
			Volumes: []v1alpha1.ReportedVolume{
				{Path: "plugins/kubernetes.io/csi/disk.example.com/5e/globalmount", Driver: "disk.example.com", Handle: "vol-1", PersistentVolume: "pv-7",
					Mode: "Filesystem", Staged: v1alpha1.NodeYes, Mounted: v1alpha1.NodeYes, Forgotten: true},
				{Path: "plugins/kubernetes.io/csi/volumeDevices/staging/pv-8", Mode: "Block", Staged: v1alpha1.NodeUnknown, Mounted: v1alpha1.NodeNo,
					Published: []v1alpha1.PublishedPod{{PodUID: "p0", PodFolder: true, Mounted: v1alpha1.NodeYes}}, Unknown: "there is no vol_data.json"},
			},
			Truncated: true, Unknown: []string{"pods: permission denied"},
			Summary: &v1alpha1.NodeMountReportSummary{Volumes: 2, Forgotten: 1, Unknown: 1},
		},
	}
}

func volumes(n int) []v1alpha1.TicketVolume {
	out := make([]v1alpha1.TicketVolume, n)
	for i := range out {
		name := fmt.Sprintf("%s-%03d", strings.Repeat("x", 249), i)
		out[i] = v1alpha1.TicketVolume{Claim: &v1alpha1.ClaimReference{Name: name, UID: "41d3"}}
	}
	return out
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: kind}
}

func checkRefusal(t *testing.T, err error, wants []string) {
	t.Helper()
	if len(wants) == 0 {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	if err == nil {
		t.Fatalf("admitted; want a refusal that says %q", wants)
	}
	for _, want := range wants {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the refusal %q does not say %q", err, want)
		}
	}
}

func operations(names ...v1alpha1.VolumeOperation) []v1alpha1.VolumeOperation {
	return append([]v1alpha1.VolumeOperation{}, names...)
}
