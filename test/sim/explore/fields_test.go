// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"bytes"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/world"
)

// Each field is in the key of a state, directly or by its consequences, or has a reason for being left out.
type fields struct {
	key    string
	others map[string]string
}

// A new field needs a decision.
func TestFieldsInKey(t *testing.T) {
	known := knownFields()
	met := map[string]bool{}
	var visit func(reflect.Type)
	visit = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			visit(typ.Elem())
		case reflect.Map:
			visit(typ.Key())
			visit(typ.Elem())
		case reflect.Struct:
			if name := typ.String(); strings.Contains(typ.PkgPath(), "moorage") && !met[name] {
				met[name] = true
				for _, f := range checkFields(t, typ, known) {
					visit(f)
				}
			}
		}
	}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[state](), // and types that no field shows
		reflect.TypeFor[ledger.Attachment](), reflect.TypeFor[ledger.HoldSeen](),
	} {
		visit(typ)
	}
	for name := range known {
		if !met[name] {
			t.Errorf("%s is not part of a state any more", name)
		}
	}
}

func checkFields(t *testing.T, typ reflect.Type, known map[string]fields) []reflect.Type {
	name := typ.String()
	said, listed := known[name]
	container := strings.Contains(name, "[") // of visited types too
	if !listed && !container {
		t.Errorf("say of %s which of its fields are in the key", name)
	}
	in := strings.Fields(said.key)
	var list []reflect.Type
	for i := range typ.NumField() {
		f := typ.Field(i)
		why, other := said.others[f.Name]
		switch {
		case container || slices.Contains(in, f.Name) && !other:
			list = append(list, f.Type)
		case !other || why == "":
			t.Errorf("%s.%s is not in the key of a state: encode it, or say why it does not matter", name, f.Name)
		}
	}
	for _, f := range slices.Concat(in, slices.Collect(maps.Keys(said.others))) {
		if _, exists := typ.FieldByName(f); !exists {
			t.Errorf("%s has no field %s", name, f)
		}
	}
	return list
}

// Another value of a field in the key gives another encoding.
func TestFieldsChangeKey(t *testing.T) {
	s := begin(Handover())
	vector := func(write func(*encoder)) []byte {
		e := &encoder{}
		write(e)
		for _, r := range slices.Concat(e.refs, e.shifts) {
			e.out = append(e.out, byte(r.value()))
		}
		return e.out
	}
	v := volume(1)
	who := ledger.Requester{Namespace: namespace, Name: "p1", UID: "p1"}
	hold := ledger.Hold{
		Version: "1", Node: "w1", NodeUID: "1", BootID: "1", Requesters: []ledger.Requester{who}, Next: ledger.Promise{Node: "w1", To: who}, Transitions: 1,
		PVs: []string{"1"}, Waiting: []ledger.Requester{who}, Force: &ledger.Force{Rule: "1"}, Fences: []ledger.Fence{{Node: "w1"}},
	}
	pod := ledger.Pod{UID: "p1", Version: "1", Node: "w1"}
	ticket := ledger.Ticket{ID: askID(0), UID: "1", Version: "1", Node: "w1", Reason: "1"}
	check := func(value any, write func(*encoder, any)) {
		typ := reflect.TypeOf(value)
		was := vector(func(e *encoder) { write(e, value) })
		for _, name := range strings.Fields(knownFields()[typ.String()].key) {
			changed := reflect.New(typ).Elem()
			changed.Set(reflect.ValueOf(value))
			if !changeField(changed.FieldByName(name)) {
				continue // a struct of its own, or an object
			}
			if is := vector(func(e *encoder) { write(e, changed.Interface()) }); bytes.Equal(was, is) {
				t.Errorf("another %s.%s is not another key", typ, name)
			}
		}
	}
	check(pod, func(e *encoder, x any) { e.pod(x.(ledger.Pod)) })
	check(ticket, func(e *encoder, x any) { e.ticket(x.(ledger.Ticket)) })
	check(ledger.NodeState{Name: "w1", UID: "1", Version: "1", BootID: "1"}, func(e *encoder, x any) { e.node(x.(ledger.NodeState)) })
	check(ledger.Attachment{Name: attachmentName(1, 1), UID: "1", Version: "1", PersistentVolume: "1"}, func(e *encoder, x any) { e.attachment(s, x.(ledger.Attachment)) })
	check(hold, func(e *encoder, x any) { e.hold(v, x.(ledger.Hold)) })
	check(ledger.Force{Rule: "1", Node: "w1"}, func(e *encoder, x any) { e.force(x.(ledger.Force)) })
	check(ledger.Fence{Node: "w1"}, func(e *encoder, x any) { e.fence(v, x.(ledger.Fence)) })
	check(rules.Step{Kind: rules.WriteHold, Volume: v, Node: "w1", Rule: "1", Attachment: attachmentName(1, 1), Hold: hold}, func(e *encoder, x any) { e.step(x.(rules.Step)) })
	check(protocol.Task{Ticket: &ticket, Sent: protocol.Request{Kind: rules.GetObject}}, func(e *encoder, x any) { e.task(x.(protocol.Task)) })
	check(protocol.NodePatch{Node: "w1"}, func(e *encoder, x any) { e.patch(world.Request{Node: "w1", Patch: x.(protocol.NodePatch)}) })
	check(protocol.Change{Volume: v}, func(e *encoder, x any) {
		e.patch(world.Request{Node: "w1", Read: ledger.NodeState{Version: x.(protocol.Change).Version}, Patch: protocol.NodePatch{Changes: []protocol.Change{x.(protocol.Change)}}})
	})
}

func changeField(f reflect.Value) bool {
	switch f.Kind() {
	case reflect.Bool:
		f.SetBool(!f.Bool())
	case reflect.Int, reflect.Int64:
		f.SetInt(f.Int() + 1)
	case reflect.Uint8:
		f.SetUint(f.Uint() + 1)
	case reflect.String:
		f.SetString(f.String()[:max(0, f.Len()-1)] + "2")
	case reflect.Slice:
		one := reflect.Zero(f.Type().Elem())
		if f.Type().Elem() == reflect.TypeFor[ledger.VolumeID]() {
			one = reflect.ValueOf(volume(1))
		}
		f.Set(reflect.Append(f, one))
	case reflect.Pointer:
		if f.IsNil() {
			f.Set(reflect.New(f.Type().Elem()))
		} else {
			f.SetZero()
		}
	default:
		return false
	}
	return true
}

const (
	same        = "the same in all states of a search"
	never       = "nothing in these worlds sets it"
	internal    = "of records in memory"
	noTime      = "no time passes"
	position    = "it says where the rest is written"
	direct      = "of requests that are served at once"
	cooperative = "of Cooperative mode, which is not played"
	people      = "it is for people"
	resolved    = "it follows from claims and PersistentVolumes"
	ofVolumes   = "it follows from the volumes"
)

func knownFields() map[string]fields {
	all := map[string]fields{}
	for _, some := range []map[string]fields{worldFields(), flowFields(), objectFields(), ledgerFields()} {
		maps.Copy(all, some)
	}
	return all
}

func worldFields() map[string]fields {
	return map[string]fields{
		"explore.state":    {"w leader led orphans restarts lost failed dead stuck silences unready remade vanished renewals muted anew erased reboots cut asked sent left", map[string]string{"config": same, "leased": "renewals are compared with each other only", "podsSeen": "after each move it is what the API server has"}},
		"explore.leader":   {"ledger tickets nodes memory wires waiting queue retry upTo", map[string]string{"looked": "between moves it is zero", "code": "it is the key's own", "fault": "it follows from what is known"}},
		"explore.queue":    {"volumes nodes tickets", nil},
		"rules.CutMachine": {"NodeUID BootID Look LookSince LookWord", map[string]string{"Driver": same, "Node": position, "SystemUUID": same}},
		"explore.wire":     {"request ops", nil},
		"explore.op":       {"key task late waits", nil},
		"world.World":      {"Objects Machines Disks Judge", map[string]string{"Now": noTime, "Stamps": same, "Forgetful": same, "Mapped": same, "OlderHolds": never, "Refusals": never}},
		"world.Objects": {"all deleting vanished", map[string]string{
			"shared": internal, "sorted": "it follows from all", "leads": resolved,
			"made":    "times stand still, and no live migration is played",
			"version": "versions are compared with each other only",
			"changed": "what the watches have yet to show is in the key", "uids": "UIDs are compared with each other only",
			"Log": "between moves it is empty",
		}},
		"world.Machine": {"Node Powered Boots Containers Mounts Staged Left Stuck Process Renewed Agent Cut", map[string]string{"ID": same, "NoBoot": never, "NoUUID": never, "Replaced": never, "Streak": never, "Before": never, "LeaveRecords": same}},
		"world.Agent":   {"Runs Found", map[string]string{"Blind": never, "Unread": never, "Torn": never}},
		"world.Process": {"Up Linked Broken Registered Ended Synced Attached Uncounted Told Checked", map[string]string{
			"Leaving": never, "Node": "after each move it is as the API server has it",
			"Pods":     "after each move they are as the API server has them",
			"SeenPods": "after each move it is true of a kubelet that works", "Asked": "after each move nothing is under way", "Unknown": never, "pauses": "they end at once",
		}},
		"world.Disks": {"At", map[string]string{"Lied": never}},
		"world.Judge": {"left proofs ended doomed numbers known bound taken counts leavers been lost forced gone unheard", map[string]string{
			"Faults": "a search ends with the first", "ByTime": people, "Overtaken": people,
			"SameBoot": people, "Began": "it matters to what untold says", "madeFor": "no PersistentVolume is made again for another disk", "Leases": never, "notReady": "it follows from the Node", "named": "a node has one machine", "limits": same, "beside": never,
			"over": never, "Cooperative": never, "theirs": never, "Exact": same, "shrank": never, "unlimited": "it only keeps a fault back", "placed": "it matters to what the granter knew of pods, which is not told here", "shaken": "of pods that are placed", "shook": "a scheduler knows all nodes here", "highest": same, "Binds": never, "Alone": same, "Shrinks": never, "unsure": "besides the end of a run only tickets that are told of volumes without VolumeAttachments ask for it, and no Node is deleted beside them", "told": "it follows from the satisfied tickets: no claim ever leads to another disk",
		}},
		"world.deletion": {"at", map[string]string{"since": noTime}},
		"world.loss":     {"at named told", map[string]string{"another": "the volumes whose losses are listed are shared"}},
		"world.mount":    {"machine boot volume", nil},
		"world.At":       {"Volume Node", nil},
		"world.given":    {"node transitions", nil},
		"world.proof":    {"attachment ground made", nil},
		"world.ended":    {"proof at again first last", nil},
	}
}

func flowFields() map[string]fields {
	return map[string]fields{
		"world.Request": {"Do Kind Key Node Volume UID Version Fact Read Patch Phase Reason Epoch Granted EpochOnly Stamp Since Look YieldingSince", map[string]string{"Interruptions": "its pause lasts, as no time passes",
			"Decided": never, "InUse": direct, "Same": direct, "NotReady": direct, "SystemUUID": direct, "BootID": direct, "Error": direct,
			"NodeID": direct, "WasID": direct, "TestsID": direct, "Manager": never, "Within": cooperative,
		}},
		"protocol.NodePatch": {"InUse Version Changes", map[string]string{
			"Node": "it is the request's", "UID": "it is Read's", "Out": "it follows from Changes",
			"In": "it follows from Changes",
		}},
		"protocol.Change": {"Volume Add Rule WhileReady", map[string]string{"NodeUID": "it is the patch's", "Version": "it is the patch's"}},
		"protocol.Memory": {"confirmed", map[string]string{
			"Epoch": "it is which leader this is", "Outlast": same, "listed": "a leader that decides has listed all", "current": "a leader that decides has read all it needs",
			"tookOver": "a leader that decides has done so",
		}},
		"protocol.Task":    {"Step Ticket Proofs Commit TookOver Sent Announced Listed Known Read Before Outlasted Unanswered", map[string]string{"Until": cooperative, "Cause": never, "Was": never}},
		"protocol.ReadOf":  {"Object Key All", nil},
		"protocol.Request": {"Kind Object Key Node Volume UID Version Fact Beside Change Phase Verdict Epoch Granted EpochOnly Look YieldingSince", map[string]string{"Who": people, "Until": cooperative, "Interruptions": "its pause lasts, as no time passes"}},
		"rules.Verdict":    {"Reasons", map[string]string{"Outcome": "the first reason stands for all"}},
		"rules.Reason": {"Code", map[string]string{
			"Volume": people, "Claim": people, "Node": people, "Driver": people, "Who": people, "Used": people, "Limit": people,
			"Needed": people, "GRPC": people, "Policy": people, "Detail": people, "Seconds": people, "Since": people, "Until": people, "Brake": people, "NodeDeleted": people, "Left": people,
		}},
		"rules.Step": {"Kind Volume Node NodeUID NodeVersion Rule UID Version PV Transitions Note Hold Expect Word Number Unknown WhileReady Vacant Limit", map[string]string{"Successor": "a node has one machine", "Cooperative": same, "Urgent": "what is not urgent is put off, and here every step may come at any time", "Attachment": "it follows from Volume and Node", "NodeID": same, "Who": people, "Beside": never, "Within": cooperative}},
	}
}

func objectFields() map[string]fields {
	return map[string]fields{
		"ledger.Pod": {"Version Node Phase", map[string]string{"OwnCSI": never, "Reserved": "in the memory of a scheduler only", "unseen": "in the memory of a scheduler only",
			"UID": position, "Namespace": same, "Name": "it is the UID", "Created": never, "Mirror": never, "Priority": never, "OptedOut": never, "Started": never, "Bound": never,
			"Volumes": "the same as long as the pod lives", "inline": "it follows from Volumes", "at": resolved,
		}},
		"ledger.Ticket": {"UID Version Node Epoch Phase Reason InDoubt Granting Granted SatisfiedSince YieldingSince LetsGo", map[string]string{
			"ID": position, "Type": same,
			"Created": noTime, "TTLSeconds": never, "Finalizers": never, "Volumes": same, "at": "it follows from the users of the VolumeOnNodes",
			"Interruptions": "its pause lasts, as no time passes", "interrupted": "its pause lasts, as no time passes", "Wherever": never, "Parameters": never, "OnDrain": never, "NodeGone": never, "gone": never,
		}},
		"ledger.NodeState": {"UID Version Ready ReadySince OutOfService Reporting BootID InUse Reported Fenced CutOff", map[string]string{"Name": position, "Managed": same, "Draining": never, "Shutdown": never, "SystemUUID": same, "ProviderID": never, "Labels": never, "SELinuxMount": never}},
		"ledger.Attachment": {"UID Version PersistentVolume Attached Deleting Stamped Transitions Note NodeID Wanted AttachError DetachError", map[string]string{
			"Name": position, "Driver": same, "Node": position, "Inline": never, "DeletedAt": never, "KeptBy": never, "Ours": "all are", "Cooperative": same,
			"Confirmed": "it matters only where it is not ours", "own": "it follows from the name",
		}},
		"ledger.Note":      {"NodeUID Boot Pod", nil},
		"ledger.CallError": {"Code", map[string]string{"Message": people}},
		"ledger.HoldSeen":  {"Hold", map[string]string{"Volume": position}},
		"ledger.Hold":      {"Version Node NodeUID BootID Requesters Next Transitions PVs State Reason Message Stays Waiting Force Fences", map[string]string{"SystemUUID": "a node has one machine", "Grants": "each of its numbers makes another version"}},
		"ledger.Promise":   {"Node To", nil},
		"ledger.Requester": {"UID", map[string]string{"Ticket": "it follows from the UID", "Namespace": "it follows from the UID", "Name": "it follows from the UID"}},
		"ledger.Force":     {"Rule Node Elapsed NodeUID Since Renewed", nil},
		"ledger.Fence":     {"Node NodeUID BootID Attachment Rule InUse Reported Since Renewed", map[string]string{"SystemUUID": "a node has one machine"}},
		"ledger.Claim": {"Bound", map[string]string{
			"Key": position, "UID": same, "Version": "a claim changes once", "PersistentVolume": same,
			"Lost": "it follows from Bound", "Deleting": never, "Class": same, "Access": same, "OwnerPod": never,
			"SelectedNode": never,
		}},
		"ledger.PersistentVolume": {"Name", map[string]string{
			"Capacity": never,
			"UID":      "the same as long as it exists", "Version": "the same as long as it exists",
			"Volume": "the same as long as it exists", "Access": "the same as long as it exists",
			"Class": "the same as long as it exists", "Claim": "the same as long as it exists",
			"ClaimUID": "the same as long as it exists", "Affinity": "the same as long as it exists",
			"Strays": "the same as long as it exists", "Deleting": "the same as long as it exists",
		}},
		"ledger.NodeWord": {"UID Version NodeUID BootID Look Looked Has Mounted Forgotten", map[string]string{"Node": position, "Whole": "they see all there is", "Unread": never, "Unlisted": never, "allElse": "they see all there is", "unreadOf": never, "doubts": never, "theres": never}},
		"ledger.TicketID": {"Name", map[string]string{"Namespace": same}},
		"ledger.VolumeID": {"Handle", map[string]string{"Driver": same}},
	}
}

func ledgerFields() map[string]fields {
	return map[string]fields{
		"ledger.Ledger": {"facts buried", map[string]string{
			"mu": internal, "gen": internal, "refusals": "no driver refuses for want of room",
			"reads": never, "touched": "between events it is empty", "gathering": "nobody gathers", "shown": "it is facts",
		}},
		"ledger.facts": {"volumes nodes pods claims pvs attachments tickets", map[string]string{
			"epochOfTokens": same, "token": "only the order of a volume's numbers matters", "epoch": noTime, "complete": "a leader that decides has all lists", "noForceOnTimeout": never, "classes": same,
			"drivers": same, "csi": same, "dropsHoldBoots": never, "doubtsCutOff": never, "unmatched": "it follows from attachments and holds", "listed": "it follows from the holds", "alone": "it follows from the words and the NodeMountReport", "policies": same, "rules": same, "zones": "they follow from the nodes, of which two are never too many", "unread": never,
		}},
		"ledger.Snapshot":     {"facts", map[string]string{"delta": "of dry runs"}},
		"ledger.Volume":       {"ID Access OnNodes Hold HoldUnanswered dropped earlier left", map[string]string{"noted": "it follows from the attachments", "named": "no pod names a volume inline", "pvs": resolved, "gen": internal}},
		"ledger.earlier":      {"force read", nil},
		"ledger.left":         {"node", map[string]string{"at": noTime}},
		"ledger.VolumeOnNode": {"Node Users Reported InUse Proof Lapsed SawLeave Sent Left Held ReportSent UnreportSent CreateFailed Unlisted first odd idle", map[string]string{"OnlyAsked": never, "more": "nobody makes attachments under other names"}},
		"ledger.odd":          {"had unknown", nil},
		"ledger.Boot":         {"BootID", map[string]string{"SystemUUID": "a node has one machine"}},
		"ledger.User":         {"Pod Ticket", nil},
		"ledger.Proof":        {"Stage Forced Named Unstaged Look Again vacant", nil},
		"ledger.attachmentRecord": {"handle to pv uid version odd transitions attached deleting pod stamped ours wanted confirmed", map[string]string{
			"gen": internal, "own": "it follows from the name", "inline": never, "cooperative": same,
			"byName": "of a PersistentVolume that was never seen, and never comes back",
			"proved": "it follows from the proof at its node",
		}},
		"ledger.machine": {"node nodeID note", map[string]string{"driver": same}},
		"ledger.oddAttachment": {"attachError detachError", map[string]string{
			"name": "nobody makes attachments under other names", "uid": never, "version": never, "driver": never,
			"deletedAt": never, "keptBy": never, "seen": noTime,
		}},
		"ledger.Node": {"NodeState Exists Drivers NotReady SawFail Heard OutOfServiceAt Renewed RenewedAt LeaseRead UnreadSince ReadAgain Unread last Word AskedAt FencedAt", map[string]string{
			"RefusedSince": "nobody refuses a question", "RefusedAt": "nobody refuses a question", "MachineAt": same, "CutBefore": never, "ShutdownAt": never, "CSINode": same, "CSIRev": same, "Tickets": "it follows from the tickets", "gen": internal, "reported": ofVolumes,
			"inUse": ofVolumes, "inBulk": "false but within one event", "counted": "it follows from the rest",
		}},
		"ledger.FencedCondition": {"Since", map[string]string{"Type": same}},
		"ledger.FencedAt":        {"FencedCondition Void", map[string]string{"At": noTime}},
		"ledger.NodeDriver":      {"Exhausted", map[string]string{"DriverOnNode": same, "Registered": same, "Used": ofVolumes, "Occupied": ofVolumes, "OnlyAsked": ofVolumes, "handles": ofVolumes, "to": same, "noted": same}},
		"ledger.claimRecord":     {"Claim exists", map[string]string{"pods": "it follows from the pods", "tickets": "it follows from the tickets", "gen": internal}},
		"ledger.pvRecord": {"exists", map[string]string{
			"PersistentVolume": "the same as long as it exists", "claims": "it follows from the claims",
			"tickets": "it follows from the tickets", "attachments": "it follows from the attachments", "outlived": "it follows from the attachments", "gen": internal,
		}},
	}
}
