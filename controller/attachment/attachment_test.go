// SPDX-License-Identifier: Apache-2.0

package attachment

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/apitest"
)

const driver = "d"

func volume(handle string) ledger.VolumeID { return ledger.VolumeID{Driver: driver, Handle: handle} }

func facts(now time.Time, handles ...string) *ledger.Ledger {
	l := ledger.New()
	apply := func(e ledger.Event) { l.Apply(now, e) }
	apply(ledger.NodeState{Name: "n1", UID: "n", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
	apply(ledger.NodeDrivers{Node: "n1", Version: "1", Drivers: []ledger.DriverOnNode{{Name: driver, NodeID: "i-1", Limit: ledger.NoLimit}}})
	for _, h := range handles {
		apply(ledger.PersistentVolume{Name: h, Version: "1", Volume: volume(h), Access: ledger.AccessMany, Claim: ledger.ClaimKey{Namespace: "s", Name: h}})
		apply(ledger.Claim{Key: ledger.ClaimKey{Namespace: "s", Name: h}, Version: "1", PersistentVolume: h, Bound: true})
		apply(ledger.Pod{UID: h, Version: "1", Namespace: "s", Name: h, Node: "n1", Volumes: []ledger.PodVolume{{Name: "v", Claim: h}}})
	}
	return l
}

func attachmentOf(handle, version string, attached bool) ledger.Attachment {
	return ledger.Attachment{
		Name: ledger.AttachmentName(volume(handle), "n1"), UID: handle, Version: version, Driver: driver, Node: "n1",
		PersistentVolume: handle, Attached: attached, Ours: true,
	}
}

type doer struct {
	mu    sync.Mutex
	steps []rules.Step
	do    func(rules.Step) error
}

func (d *doer) Do(_ context.Context, s rules.Step) error {
	d.mu.Lock()
	d.steps = append(d.steps, s)
	d.mu.Unlock()
	if d.do == nil {
		return nil
	}
	return d.do(s)
}

func (d *doer) count(do rules.Kind) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for _, s := range d.steps {
		if s.Kind == do {
			n++
		}
	}
	return n
}

func controller(t *testing.T, l *ledger.Ledger, d *doer, now *time.Time) *Controller {
	t.Helper()
	c, err := New(Config{Snapshot: l.Snapshot, Do: d, Now: func() time.Time { return *now }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestStepsAreDoneSideBySide(t *testing.T) {
	now := time.Unix(1000, 0)
	l := facts(now, "data")
	l.Apply(now, ledger.NodeState{Name: "n2", UID: "m", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
	l.Apply(now, ledger.NodeDrivers{Node: "n2", Version: "1", Drivers: []ledger.DriverOnNode{{Name: driver, Limit: ledger.NoLimit}}})
	l.Apply(now, ledger.Pod{UID: "p2", Version: "1", Namespace: "s", Name: "p2", Node: "n2", Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}})
	both := make(chan struct{}, 10)
	broken := errors.New("broken")
	d := &doer{do: func(s rules.Step) error {
		both <- struct{}{}
		for len(both) < 2 { // each waits for the second
			time.Sleep(time.Millisecond)
		}
		if s.Node == "n2" {
			return broken
		}
		return nil
	}}
	c := controller(t, l, d, &now)
	c.flights.add(2)
	process(t, c, "data")
	c.flying.Wait()
	if d.count(rules.CreateAttachment) != 2 || c.Depth() != 1 {
		t.Errorf("%d volumes are due, steps %+v", c.Depth(), d.steps)
	}
	if again := process(t, c, "data"); again <= 0 {
		t.Error("one step failed, and it is not tried again")
	}
	c.flying.Wait()
}

func TestRecheck(t *testing.T) {
	now := time.Unix(1000, 0)
	l := facts(now, "data")
	l.Apply(now, ledger.Policy{Name: "p", Version: "1", Driver: driver, DetachDelay: time.Minute})
	l.Apply(now, attachmentOf("data", "2", true))
	l.Apply(now, ledger.PodGone{UID: "data"})
	d := &doer{}
	c := controller(t, l, d, &now)
	now = now.Add(20 * time.Second)
	after, err := c.process(t.Context(), volume("data"))
	if err != nil || after != 40*time.Second || len(d.steps) > 0 {
		t.Errorf("again after %s (%v), steps %+v", after, err, d.steps)
	}
	now = now.Add(40 * time.Second)
	if _, err := c.process(t.Context(), volume("data")); err != nil || d.count(rules.Unreport) != 1 {
		t.Errorf("steps %+v (%v)", d.steps, err)
	}
}

func TestWorkers(t *testing.T) {
	now := time.Unix(1000, 0)
	l := facts(now, "a", "b", "c")
	l.Apply(now, ledger.Policy{Name: "p", Version: "1", Driver: driver, Workers: 2})
	d := &doer{}
	d.do = func(s rules.Step) error {
		if s.Kind == rules.CreateAttachment {
			l.Apply(now, attachmentOf(s.Volume.Handle, "2", false))
		}
		return nil
	}
	c := controller(t, l, d, &now)
	process := func(handle string) {
		t.Helper()
		if _, err := c.process(t.Context(), volume(handle)); err != nil {
			t.Fatal(err)
		}
	}
	for _, handle := range []string{"a", "b", "c", "c"} {
		process(handle)
	}
	if got := d.count(rules.CreateAttachment); got != 2 {
		t.Fatalf("%d attaches under way, want 2", got)
	}
	if c.Waits(volume("a")) || !c.Waits(volume("c")) {
		t.Error("who waits for a worker is c, and not a")
	}
	l.Apply(now, attachmentOf("a", "3", true))
	process("a")
	if c.Depth() != 1 || c.Waits(volume("c")) {
		t.Errorf("a worker is free, and %d are looked at", c.Depth())
	}
	process("c")
	if c.Waits(volume("c")) {
		t.Error("c has its worker")
	}
	for i := range crowd + 1 {
		c.Later(volume(fmt.Sprint("other-", i)))
	}
	if !c.Waits(volume("c")) {
		t.Error("of so many that are due none is late")
	}
	if got := d.count(rules.CreateAttachment); got != 3 {
		t.Errorf("%d attaches were begun, want 3", got)
	}
}

// A failed write keeps its worker from no volume.
func TestFailedStepsFreeTheirWorker(t *testing.T) {
	now := time.Unix(1000, 0)
	l := facts(now, "a", "b")
	l.Apply(now, ledger.Policy{Name: "p", Version: "1", Driver: driver, Workers: 1})
	d := &doer{do: func(s rules.Step) error {
		if s.Volume == volume("a") {
			return errors.New("broken")
		}
		return nil
	}}
	c := controller(t, l, d, &now)
	for range 2 {
		again, err := c.process(t.Context(), volume("a"))
		if err != nil || again <= 0 {
			t.Fatalf("again after %s (%v)", again, err)
		}
		now = now.Add(again)
	}
	if got := d.count(rules.CreateAttachment); got != 2 {
		t.Errorf("%d attempts, want 2: the first one keeps its worker", got)
	}
	if _, err := c.process(t.Context(), volume("b")); err != nil || d.count(rules.CreateAttachment) != 3 {
		t.Errorf("the other volume waits for the one that fails (%v): %+v", err, d.steps)
	}
}

func TestAttachIsTold(t *testing.T) {
	recorder := record.NewFakeRecorder(10)
	now := time.Unix(1000, 0)
	c, err := New(Config{
		Snapshot: facts(now, "a").Snapshot, Do: &doer{}, Now: func() time.Time { return now }, Events: report.NewEventsWith(recorder),
	})
	if err != nil {
		t.Fatal(err)
	}
	report := rules.Step{Kind: rules.Report, Volume: volume("a"), Node: "n1"}
	for _, step := range []rules.Step{
		report, // put back: nothing was attached
		{Kind: rules.CreateAttachment, Volume: volume("a"), Node: "n1"},
		report, report, // told once
		{Kind: rules.Report, Volume: volume("nobody's"), Node: "n1"},
	} {
		if err := c.do(t.Context(), step); err != nil {
			t.Fatal(err)
		}
	}
	if len(recorder.Events) != 1 {
		t.Fatalf("%d events, want one", len(recorder.Events))
	}
	if event, want := <-recorder.Events, `Normal SuccessfulAttachVolume AttachVolume.Attach succeeded for volume "a" `; event != want {
		t.Errorf("event %q, want %q", event, want)
	}
}

func TestForcedDetachIsTold(t *testing.T) {
	recorder, metrics := record.NewFakeRecorder(10), report.NewMetrics(nil)
	c, err := New(Config{
		Snapshot: ledger.New().Snapshot, Do: &doer{}, Now: func() time.Time { return time.Unix(1000, 0) },
		Metrics: metrics, Events: report.NewEventsWith(recorder),
	})
	if err != nil {
		t.Fatal(err)
	}
	lun := ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "portal:iqn:0"}
	for _, step := range []rules.Step{
		{Kind: rules.Unreport, Volume: volume("a"), Node: "n1", Rule: rules.OutOfService},
		{Kind: rules.DeleteAttachment, Volume: volume("a"), Node: "n1", Rule: rules.OutOfService},
		{Kind: rules.DeleteAttachment, Volume: volume("b"), Node: "n1"},
		{Kind: rules.Unreport, Volume: lun, Node: "n1", Rule: rules.AfterPodGone},
		{Kind: rules.Unreport, Volume: lun, Node: "n1"},
	} {
		if err := c.do(t.Context(), step); err != nil {
			t.Fatal(err)
		}
	}
	for _, rule := range []string{rules.OutOfService, rules.AfterPodGone} {
		if event := <-recorder.Events; !strings.Contains(event, "ForcedDetach") || !strings.Contains(event, rule) {
			t.Errorf("event %q, want one of rule %s", event, rule)
		}
	}
	want := `
# HELP moorage_forced_detaches_total Volumes detached without their kubelet's report, by rule.
# TYPE moorage_forced_detaches_total counter
moorage_forced_detaches_total{rule="AfterPodGone"} 1
moorage_forced_detaches_total{rule="OutOfService"} 1
`
	if err := testutil.GatherAndCompare(metrics.Registry, strings.NewReader(want), "moorage_forced_detaches_total"); err != nil {
		t.Error(err)
	}
	if len(recorder.Events) > 0 {
		t.Errorf("and event %q", <-recorder.Events)
	}
}

// There is no event for a missing answer or old facts, nor if the volume is attached or leaves.
func TestRefusedWritesAreToldToPods(t *testing.T) {
	now := time.Unix(1000, 0)
	denied := fmt.Errorf("write-hold: refused: %w", apierrors.NewForbidden(corev1.Resource("volumeholds"), "vh-1", errors.New("by a policy")))
	for name, test := range map[string]struct {
		do       rules.Kind
		err      error
		reported bool
		told     int
	}{
		"a hold":             {rules.WriteHold, denied, false, 1},
		"an attachment":      {rules.CreateAttachment, denied, false, 1},
		"a node's status":    {rules.Report, denied, false, 1},
		"it is there":        {rules.WriteHold, denied, true, 0},
		"a detach":           {rules.DeleteAttachment, denied, false, 0},
		"a webhook is down":  {rules.CreateAttachment, apierrors.NewInternalError(errors.New(`failed calling webhook "by a policy": connection refused`)), false, 1},
		"no answer":          {rules.CreateAttachment, errors.New("connection reset"), false, 0},
		"old facts":          {rules.WriteHold, fmt.Errorf("%w: %w", protocol.ErrStale, denied), false, 0},
		"it has no time now": {rules.CreateAttachment, apierrors.NewTooManyRequests("", 1), false, 0},
		"it fails":           {rules.CreateAttachment, apierrors.NewInternalError(errors.New("etcd")), false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l, recorder := facts(now, "a"), record.NewFakeRecorder(10)
			if test.reported {
				l.Apply(now, attachmentOf("a", "1", true))
				l.Apply(now, ledger.NodeState{Name: "n1", UID: "n", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true, Reported: []ledger.VolumeID{volume("a")}})
			}
			refuse(t, l, recorder, test.do, test.err, test.told, "FailedAttachVolume", "by a policy")
		})
	}
}

func refuse(t *testing.T, l *ledger.Ledger, recorder *record.FakeRecorder, do rules.Kind, refusal error, told int, words ...string) {
	t.Helper()
	c, err := New(Config{
		Snapshot: l.Snapshot, Do: &doer{do: func(rules.Step) error { return refusal }}, Now: func() time.Time { return time.Unix(1000, 0) },
		Events: report.NewEventsWith(recorder),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.do(t.Context(), rules.Step{Kind: do, Volume: volume("a"), Node: "n1"}); err == nil {
		t.Fatal("the step succeeds")
	}
	if len(recorder.Events) != told {
		t.Fatalf("%d events, want %d", len(recorder.Events), told)
	}
	if told == 0 {
		return
	}
	event := <-recorder.Events
	for _, w := range words {
		if !strings.Contains(event, w) {
			t.Errorf("told %q, and not %q", event, w)
		}
	}
}

// The recorder drops excess events: a namespace's pods leave room for the events of others.
func TestRefusedWritesAreToldWithinAQuota(t *testing.T) {
	const pods, most = 40, 10
	now := time.Unix(1000, 0)
	l := facts(now, "a")
	for i := range pods {
		name := fmt.Sprint("p", i)
		l.Apply(now, ledger.Pod{UID: name, Version: "1", Namespace: "s", Name: name, Node: "n1", Volumes: []ledger.PodVolume{{Name: "v", Claim: "a"}}})
	}
	denied := apierrors.NewForbidden(corev1.Resource("volumeattachments"), "va", errors.New("by a policy"))
	told, all := named{}, 0
	tries := func(n int) {
		c, err := New(Config{
			Snapshot: l.Snapshot, Do: &doer{do: func(rules.Step) error { return denied }}, Now: func() time.Time { return now },
			Events: report.NewEventsWith(told),
		})
		if err != nil {
			t.Fatal(err)
		}
		for range n {
			if err := c.do(t.Context(), rules.Step{Kind: rules.CreateAttachment, Volume: volume("a"), Node: "n1"}); err == nil {
				t.Fatal("the step succeeds")
			}
		}
	}
	tries(20)
	for _, n := range told {
		all += n
	}
	if all == 0 || all > most {
		t.Errorf("%d events at once, want %d at most", all, most)
	}
	for range 200 { // each has a quota of its own
		tries(1)
	}
	if len(told) != pods+1 {
		t.Errorf("%d pods of %d are told", len(told), pods+1)
	}
}

type named map[string]int

func (n named) Event(of runtime.Object, _, _, _ string) {
	if o, ok := of.(*corev1.ObjectReference); ok {
		n[o.Name]++
	}
}

func (n named) Eventf(of runtime.Object, _, _, _ string, _ ...any) { n.Event(of, "", "", "") }

func (n named) AnnotatedEventf(of runtime.Object, _ map[string]string, _, _, _ string, _ ...any) {
	n.Event(of, "", "", "")
}

// A shared volume makes no event.
func TestRefusedDetachesAreToldToWhoWaits(t *testing.T) {
	now := time.Unix(1000, 0)
	denied := apierrors.NewForbidden(corev1.Resource("volumeattachments"), "va", errors.New("by a policy"))
	for name, test := range map[string]struct {
		do     rules.Kind
		holder ledger.NodeName
		told   int
	}{
		"the attachment":     {rules.DeleteAttachment, "n1", 1},
		"the node's status":  {rules.Unreport, "n1", 1},
		"nobody holds it":    {rules.DeleteAttachment, "", 0},
		"a pod that is gone": {rules.RemovePod, "n1", 0},
	} {
		t.Run(name, func(t *testing.T) {
			l, recorder := facts(now, "a"), record.NewFakeRecorder(10)
			l.Apply(now, attachmentOf("a", "1", true))
			l.Apply(now, ledger.HoldSeen{Volume: volume("a"), Hold: ledger.Hold{Version: "1", Node: test.holder, State: ledger.HoldHeld}})
			l.Apply(now, ledger.NodeState{Name: "n2", UID: "m", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
			l.Apply(now, ledger.Pod{UID: "next", Version: "1", Namespace: "s", Name: "next", Node: "n2", Volumes: []ledger.PodVolume{{Name: "v", Claim: "a"}}})
			refuse(t, l, recorder, test.do, denied, test.told, `volume "a" is not attached to n2`, "by a policy")
		})
	}
}

// The detach is reported when the VolumeAttachment is seen to go, if the hold still asks for it.
func TestForcedDetachWithoutAnAnswer(t *testing.T) {
	now := time.Unix(1000, 0)
	step := rules.Step{Kind: rules.DeleteAttachment, Volume: volume("a"), Node: "n1", UID: "a", Rule: rules.AfterPodGone}
	fence := ledger.Fence{Node: "n1", Attachment: "a", Rule: rules.AfterPodGone}
	holds := func(l *ledger.Ledger, version string, fences ...ledger.Fence) {
		l.Apply(now, ledger.HoldSeen{Volume: volume("a"), Hold: ledger.Hold{Version: version, State: ledger.HoldFree, Fences: fences}})
	}
	for name, test := range map[string]struct {
		then func(*ledger.Ledger)
		told int
	}{
		"it goes": {func(l *ledger.Ledger) {
			a := attachmentOf("a", "2", true)
			a.Deleting = true
			l.Apply(now, a)
		}, 1},
		"it is gone": {func(l *ledger.Ledger) { l.Apply(now, ledger.AttachmentGone{Name: attachmentOf("a", "", true).Name}) }, 1},
		"it stays":   {func(*ledger.Ledger) {}, 0},
		"it is not asked for": {func(l *ledger.Ledger) {
			holds(l, "2")
			l.Apply(now, ledger.AttachmentGone{Name: attachmentOf("a", "", true).Name})
		}, 1},
		"it stays, not asked for": {func(l *ledger.Ledger) { holds(l, "2") }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l, recorder := facts(now, "a"), record.NewFakeRecorder(10)
			l.Apply(now, attachmentOf("a", "1", true))
			holds(l, "1", fence)
			c, err := New(Config{
				Snapshot: l.Snapshot, Do: &doer{do: func(rules.Step) error { return errors.New("no answer") }}, Now: func() time.Time { return now },
				Events: report.NewEventsWith(recorder),
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := c.do(t.Context(), step); err == nil {
				t.Fatal("the step succeeds")
			}
			test.then(l)
			for range 2 {
				c.tellForced(t.Context(), volume("a"), l.Snapshot())
			}
			if len(recorder.Events) != test.told {
				t.Errorf("%d events, want %d", len(recorder.Events), test.told)
			}
			left := 0
			if name == "it stays" {
				left = 1
			}
			if len(c.unreportedForced.fences) != left {
				t.Errorf("%d are remembered, want %d", len(c.unreportedForced.fences), left)
			}
		})
	}
}

// The first state of a term is reported once for each volume.
func TestForcedDetachesOfLeadersBefore(t *testing.T) {
	now, lun := time.Unix(1000, 0), ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "portal:iqn:0"}
	l, recorder := facts(now, "there", "gone"), record.NewFakeRecorder(10)
	l.Apply(now, attachmentOf("there", "1", true))
	for id, f := range map[ledger.VolumeID]ledger.Fence{
		volume("there"):  {Node: "n1", Attachment: "there", Rule: rules.OutOfService},
		volume("gone"):   {Node: "n1", Attachment: "gone", Rule: rules.OutOfService},
		volume("doubt"):  {Node: "n1", Attachment: "doubt"},
		volume("listed"): {Node: "n1", Rule: rules.OutOfService},
		lun:              {Node: "n1", Rule: rules.AfterPodGone},
	} {
		l.Apply(now, ledger.HoldSeen{Volume: id, Hold: ledger.Hold{Version: "1", Node: "n1", State: ledger.HoldHeld, Fences: []ledger.Fence{f}}})
	}
	c, err := New(Config{Snapshot: l.Snapshot, Do: &doer{}, Now: func() time.Time { return now }, Events: report.NewEventsWith(recorder)})
	if err != nil {
		t.Fatal(err)
	}
	c.unreportedForced.begin(l.Snapshot())
	for v := range l.Snapshot().Volumes() {
		c.tellForced(t.Context(), v.ID, l.Snapshot())
	}
	close(recorder.Events)
	var told []string
	for e := range recorder.Events {
		told = append(told, e)
	}
	all := strings.Join(told, "\n")
	if len(told) != 2 || !strings.Contains(all, "volume d^gone was") || !strings.Contains(all, "iqn:0") {
		t.Errorf("told:\n%s", all)
	}
}

// A moved volume is reported only if it was attached at both nodes.
func TestForcedDetachOfAVolumeThatMovedOn(t *testing.T) {
	now := time.Unix(1000, 0)
	fence := ledger.Fence{Node: "n1", Attachment: "gone", Rule: rules.OutOfService}
	for _, test := range []struct {
		holder ledger.NodeName
		state  ledger.HoldState
		told   int
	}{{"n1", ledger.HoldHeld, 1}, {"", ledger.HoldFree, 1}, {"n2", ledger.HoldHeld, 0}, {"n2", ledger.HoldAttachFailed, 0}, {"n2", ledger.HoldUnknown, 1}} {
		l, recorder := facts(now, "a"), record.NewFakeRecorder(10)
		l.Apply(now, ledger.HoldSeen{Volume: volume("a"), Hold: ledger.Hold{Version: "1", Node: test.holder, State: test.state, Fences: []ledger.Fence{fence}}})
		c, err := New(Config{Snapshot: l.Snapshot, Do: &doer{}, Now: func() time.Time { return now }, Events: report.NewEventsWith(recorder)})
		if err != nil {
			t.Fatal(err)
		}
		c.begin(t.Context(), l.Snapshot(), now)
		c.tellForced(t.Context(), volume("a"), l.Snapshot())
		if len(recorder.Events) != test.told {
			t.Errorf("held by %q, %s: %d events, want %d", test.holder, test.state, len(recorder.Events), test.told)
		}
	}
}

// A leader that ends between the two nodes has reported nothing.
func TestForcedDetachFromOneOfTwoNodesIsToldByTheNextLeader(t *testing.T) {
	now, recorder := time.Unix(1000, 0), record.NewFakeRecorder(10)
	l := facts(now)
	apply := func(events ...ledger.Event) {
		for _, e := range events {
			l.Apply(now, e)
		}
	}
	of := func(node ledger.NodeName, uid string) ledger.Attachment {
		return ledger.Attachment{Name: ledger.AttachmentName(volume("a"), node), UID: uid, Version: "1", Driver: driver, Node: node, PersistentVolume: "a", Attached: true, Ours: true}
	}
	at := []ledger.VolumeID{volume("a")}
	apply(
		ledger.PersistentVolume{Name: "a", Version: "1", Volume: volume("a"), Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "s", Name: "a"}},
		ledger.Claim{Key: ledger.ClaimKey{Namespace: "s", Name: "a"}, Version: "1", PersistentVolume: "a", Bound: true},
		ledger.Pod{UID: "p", Version: "1", Namespace: "s", Name: "p", Node: "n2", Volumes: []ledger.PodVolume{{Name: "v", Claim: "a"}}},
		ledger.NodeState{Name: "n1", UID: "n", Version: "2", Ready: ledger.ReadyUnknown, OutOfService: true, Managed: true, Reporting: true, InUse: at},
		ledger.NodeState{Name: "n2", UID: "m", BootID: "b", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true, InUse: at, Reported: at},
		of("n1", "first"), of("n2", "second"), ledger.Complete{},
		ledger.HoldSeen{Volume: volume("a"), Hold: ledger.Hold{Version: "1", Node: "n2", NodeUID: "m", BootID: "b", State: ledger.HoldHeld, PVs: []string{"a"}, Transitions: 1}},
	)
	first := &doer{do: func(s rules.Step) error {
		hold := s.Hold
		if hold.Version = "2"; s.Kind == rules.WriteHold {
			apply(ledger.HoldSeen{Volume: s.Volume, Hold: hold})
		}
		return nil
	}}
	process(t, controller(t, l, first, &now), "a")
	if hold := l.Snapshot().Volume(volume("a")).Hold; len(hold.Fences) != 1 || hold.Node != "n2" {
		t.Fatalf("the hold says %+v", hold)
	}
	apply(ledger.AttachmentGone{Name: of("n1", "").Name}) // and that is the last of the first leader
	next, err := New(Config{Snapshot: l.Snapshot, Do: &doer{}, Now: func() time.Time { return now }, Events: report.NewEventsWith(recorder)})
	if err != nil {
		t.Fatal(err)
	}
	next.begin(t.Context(), l.Snapshot(), now)
	next.tellForced(t.Context(), volume("a"), l.Snapshot())
	if len(recorder.Events) != 1 {
		t.Errorf("%d events, want 1", len(recorder.Events))
	}
}

// A leader reads once the reports of former leaders; if it can't read, it writes all events.
func TestForcedDetachesAreToldOnceByAllLeaders(t *testing.T) {
	for name, test := range map[string]struct {
		refused bool
		creates int32
	}{
		"they are listed":     {false, 1},
		"the list is refused": {true, 3},
	} {
		t.Run(name, func(t *testing.T) {
			now, server := time.Unix(1000, 0), apitest.Start(t)
			l := facts(now, "a", "b", "c")
			fence := func(v string) ledger.Fence {
				return ledger.Fence{Node: "n1", Attachment: v, Rule: rules.OutOfService}
			}
			for _, v := range []string{"a", "b", "c"} {
				l.Apply(now, ledger.HoldSeen{Volume: volume(v), Hold: ledger.Hold{Version: "1", Node: "n1", State: ledger.HoldHeld, Fences: []ledger.Fence{fence(v)}}})
			}
			for _, v := range []string{"a", "b"} {
				report.NewEvents(t.Context(), server.Kube).ForcedDetach(t.Context(), volume(v), fence(v))
			}
			var creates atomic.Int32
			server.Intercept(func(r apitest.Request, serve func()) error {
				if r.Verb == "create" {
					creates.Add(1)
				}
				if test.refused && r.Verb == "list" {
					return apierrors.NewForbidden(corev1.Resource("events"), "", errors.New("no right"))
				}
				serve()
				return nil
			})
			c, err := New(Config{
				Snapshot: l.Snapshot, Do: &doer{}, Now: func() time.Time { return now }, Events: report.NewEvents(t.Context(), server.Kube),
			})
			if err != nil {
				t.Fatal(err)
			}
			c.begin(t.Context(), l.Snapshot(), now)
			for v := range l.Snapshot().Volumes() {
				c.tellForced(t.Context(), v.ID, l.Snapshot())
			}
			if n := creates.Load(); n != test.creates {
				t.Errorf("%d events written, want %d", n, test.creates)
			}
			list, err := server.Kube.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
			if !test.refused && (err != nil || len(list.Items) != 3) {
				t.Errorf("%d events, %v", len(list.Items), err)
			}
		})
	}
}

func TestConfig(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("an empty Config is taken")
	}
}
