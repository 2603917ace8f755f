// SPDX-License-Identifier: Apache-2.0

package truth

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/internal/rules"
)

var (
	disk = ledger.VolumeID{Driver: "d", Handle: "data"}
	now  = time.Unix(1000, 0)
)

type world struct {
	*Checker
	t        *testing.T
	ledger   *ledger.Ledger
	pods     map[string]*corev1.Pod
	holds    map[ledger.VolumeID]*v1alpha1.VolumeHold
	recorder *recorder
	repaired []string
}

type recorder struct {
	*record.FakeRecorder
	about []corev1.ObjectReference
}

func (r *recorder) Event(object runtime.Object, kind, reason, message string) {
	r.about = append(r.about, *object.(*corev1.ObjectReference))
	r.FakeRecorder.Event(object, kind, reason, message)
}

func (w *world) Snapshot() ledger.Snapshot { return w.ledger.Snapshot() }

func (w *world) Hold(v ledger.VolumeID) (*v1alpha1.VolumeHold, bool) {
	h, ok := w.holds[v]
	return h, ok
}

func (w *world) Pod(namespace, name string) (*corev1.Pod, bool) {
	p, ok := w.pods[namespace+"/"+name]
	return p, ok
}

func start(t *testing.T, a rules.Arbiter, events ...ledger.Event) *world {
	t.Helper()
	w := &world{
		t: t, ledger: ledger.New(), pods: map[string]*corev1.Pod{}, holds: map[ledger.VolumeID]*v1alpha1.VolumeHold{},
		recorder: &recorder{FakeRecorder: record.NewFakeRecorder(100)},
	}
	w.see(
		ledger.NodeState{Name: "n1", UID: "n1", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true},
		ledger.NodeDrivers{Node: "n1", Version: "1", Drivers: []ledger.DriverOnNode{{Name: "d", Limit: ledger.NoLimit}}},
		ledger.PersistentVolume{Name: "pv", Version: "1", Volume: disk, Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "s", Name: "data"}},
		ledger.Claim{Key: ledger.ClaimKey{Namespace: "s", Name: "data"}, UID: "c", Version: "1", PersistentVolume: "pv", Bound: true, Access: ledger.AccessNode},
	)
	w.see(events...)
	checker, err := New(Config{
		Cache: w, Arbiter: a, Now: func() time.Time { return now }, Interval: DefaultInterval,
		Metrics: report.NewMetrics(nil), Events: report.NewEventsWith(w.recorder),
		Repair: Repair{
			Volume: func(v ledger.VolumeID) { w.repaired = append(w.repaired, v.String()) },
			Ticket: func(id ledger.TicketID) { w.repaired = append(w.repaired, id.String()) },
			Pod:    func(uid string) { w.repaired = append(w.repaired, uid) },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Checker = checker
	return w
}

func (w *world) see(events ...ledger.Event) {
	for _, e := range events {
		w.ledger.Apply(now, e)
	}
}

func (w *world) told(codes ...string) {
	w.t.Helper()
	var got []string
	for len(w.recorder.Events) > 0 {
		got = append(got, strings.Fields(<-w.recorder.Events)[1])
	}
	if !slices.Equal(got, codes) {
		w.t.Errorf("told %v, want %v", got, codes)
	}
}

func attachment(node ledger.NodeName, change func(*ledger.Attachment)) ledger.Attachment {
	a := ledger.Attachment{Name: ledger.AttachmentName(disk, node), UID: "va-" + string(node), Version: "5", Driver: "d", Node: node, PersistentVolume: "pv", Attached: true, Ours: true}
	if change != nil {
		change(&a)
	}
	return a
}

func boundPod() ledger.Pod {
	return ledger.Pod{UID: "p", Namespace: "s", Name: "db", Version: "3", Node: "n1", Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}}
}

func reported(version string) ledger.NodeState {
	return ledger.NodeState{Name: "n1", UID: "n1", Version: version, Ready: ledger.ReadyTrue, Managed: true, Reporting: true, Reported: []ledger.VolumeID{disk}}
}

func hold(node ledger.NodeName) ledger.HoldSeen {
	return ledger.HoldSeen{Volume: disk, Hold: ledger.Hold{Version: "4", Node: node, NodeUID: string(node), Transitions: 1, State: ledger.HoldHeld, PVs: []string{"pv"},
		Requesters: []ledger.Requester{{Namespace: "s", Name: "db", UID: "p"}}}}
}

func TestOverdue(t *testing.T) {
	w := start(t, rules.Arbiter{}, boundPod(), hold("n1"), attachment("n1", nil)) // and not reported
	w.Round()
	w.told()
	w.Round()
	w.told(StepOverdue)
	w.Round()
	w.told()
	if want := []string{disk.String(), disk.String(), disk.String()}; !slices.Equal(w.repaired, want) {
		t.Errorf("handed on %v, want %v", w.repaired, want)
	}
	w.see(reported("9")) // done
	w.Round()
	w.Round()
	w.told()
	if len(w.repaired) != 3 {
		t.Errorf("handed on %v", w.repaired)
	}
}

func TestWaitingForItsTurn(t *testing.T) {
	w := start(t, rules.Arbiter{}, boundPod(), hold("n1"), attachment("n1", nil)) // and not reported
	waits := true
	w.config.Waits = func(v ledger.VolumeID) bool { return waits && v == disk }
	for range 5 {
		w.Round()
	}
	w.told()
	waits = false
	w.Round()
	w.told(StepOverdue)
}

func TestTicketOverdue(t *testing.T) {
	id := ledger.TicketID{Namespace: "s", Name: "keep"}
	w := start(t, rules.Arbiter{}, ledger.Ticket{ID: id, UID: "t", Version: "3", Type: ledger.TypeManual, Node: "n1", Volumes: []ledger.TicketVolume{{Claim: "data"}}})
	w.Round()
	w.Round()
	w.told(TicketOverdue)
	if !slices.Equal(w.repaired, []string{"s/keep", "s/keep"}) {
		t.Errorf("handed on %v", w.repaired)
	}
}

func TestUnaccounted(t *testing.T) {
	pv := ledger.PersistentVolume{
		Name: "pv", Version: "2", Volume: disk, Access: ledger.AccessNode,
		Claim: ledger.ClaimKey{Namespace: "s", Name: "data"}, Strays: "i-9",
	}
	w := start(t, rules.Arbiter{}, pv)
	w.Round()
	w.Round()
	w.told(Unaccounted)
	pv.Version, pv.Strays = "3", ""
	w.see(pv)
	w.Round()
	w.told()
}

func TestAtOnce(t *testing.T) {
	w := start(t, rules.Arbiter{Cooperative: true}, boundPod(), attachment("n1", nil))
	w.Look(disk)
	w.told()
	w.see(attachment("n2", nil))
	w.Look(disk)
	w.Look(disk)
	w.told(AttachedTwice)
	w.see(ledger.AttachmentGone{Name: ledger.AttachmentName(disk, "n2")})
	w.Round() // over
	w.see(attachment("n2", func(a *ledger.Attachment) { a.UID, a.Version = "again", "8" }))
	w.Look(disk)
	w.told(AttachedTwice)
}

func TestOtherController(t *testing.T) {
	theirs := func(a *ledger.Attachment) { a.Ours = false }
	w := start(t, rules.Arbiter{}, attachment("n1", theirs))
	w.Look(disk)
	w.told()
	w.see(attachment("n1", func(a *ledger.Attachment) { theirs(a); a.UID, a.Version = "new", "7" }))
	w.Look(disk)
	w.Look(disk)
	w.told(OtherController)

	beside := start(t, rules.Arbiter{Cooperative: true})
	beside.see(attachment("n1", theirs))
	beside.Look(disk)
	beside.told()
}

func TestStatusDiffers(t *testing.T) {
	w := start(t, rules.Arbiter{}, boundPod(), hold("n1"), attachment("n1", nil), reported("9"))
	of := types.UID("p")
	says := func(safe bool) {
		annotation, err := v1alpha1.VolumeStatus{UID: of, Volumes: []v1alpha1.PodVolumeStatus{{Name: "v", Claim: "data", SafeToMount: safe, Reason: "Attaching"}}}.Annotation()
		if err != nil {
			t.Fatal(err)
		}
		w.pods["s/db"] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: "db", UID: types.UID("p"),
			Annotations: map[string]string{v1alpha1.AnnotationVolumeStatus: annotation}}}
	}
	says(true)
	w.Round()
	w.Round()
	w.told()
	says(false)
	w.Round()
	w.Round()
	w.told(StatusDiffers)
	if !slices.Equal(w.repaired, []string{"p", "p"}) {
		t.Errorf("handed on %v", w.repaired)
	}
	says(true)
	w.Round()
	of = "before"
	says(false) // a restored pod has the status of its original
	w.Round()
	w.Round()
	w.told()
}

// kubectl describe finds events by their object's UID.
func TestEventsAreFound(t *testing.T) {
	id := ledger.TicketID{Namespace: "s", Name: "keep"}
	w := start(t, rules.Arbiter{})
	about := func(kind, name, uid string) {
		t.Helper()
		if got := w.recorder.about; len(got) != 1 || got[0].Kind != kind || got[0].Name != name || string(got[0].UID) != uid {
			t.Errorf("events are about %+v, want one about %s %s with UID %q", got, kind, name, uid)
		}
		w.recorder.about = nil
	}
	w.see(ledger.Ticket{ID: id, UID: "t", Version: "3", Type: ledger.TypeManual, Node: "n1", Volumes: []ledger.TicketVolume{{Claim: "data"}}})
	w.Round()
	w.Round()
	about("VolumeTicket", "keep", "t")

	w.see(attachment("n1", func(a *ledger.Attachment) { a.Ours = false }))
	w.Look(disk)
	about("VolumeAttachment", ledger.AttachmentName(disk, "n1"), "va-n1")

	name := v1alpha1.VolumeHoldName(disk.Driver, disk.Handle)
	w.see(attachment("n2", nil))
	w.Look(disk)
	about("VolumeHold", name, "") // there is none yet

	w.see(ledger.AttachmentGone{Name: ledger.AttachmentName(disk, "n2")})
	w.Round()
	w.recorder.about = nil
	w.holds[disk] = &v1alpha1.VolumeHold{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "h"}}
	w.see(attachment("n2", func(a *ledger.Attachment) { a.UID, a.Version = "again", "8" }))
	w.Look(disk)
	about("VolumeHold", name, "h")
}

func TestConfig(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("an empty Config fits")
	}
}

// docs/truth-check.md explains every code.
func TestCodesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/truth-check.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range Codes() {
		if !strings.Contains(string(text), "| `"+code+"` |") {
			t.Errorf("docs/truth-check.md does not explain %s", code)
		}
	}
}
