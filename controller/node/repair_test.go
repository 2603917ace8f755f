// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/nodevolumes"
	"github.com/moorage-dev/moorage/test/apitest"
)

const testDriver = "disk.example.com"

// bench is an agent that may repair, its driver and its Node.
type bench struct {
	*machine
	server  *apitest.Server
	agent   *agent
	clock   *testclock.FakeClock
	node    corev1.Node
	nodeErr error
	reads   int // of the Node
	calls   []string
	mu      sync.Mutex
	// driver answers a call for a volume; where it stages none it is not called.
	driver     func(handle string) error
	stagesNone bool
}

func (b *bench) Get(context.Context, string, metav1.GetOptions) (*corev1.Node, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reads++
	return &b.node, b.nodeErr
}

func (b *bench) Unstage(_ context.Context, driver, handle, path string, calls func()) error {
	if b.stagesNone {
		return nil
	}
	calls()
	b.mu.Lock()
	b.calls = append(b.calls, fmt.Sprintf("%s %s %s", driver, handle, strings.TrimPrefix(path, b.config.KubeletRoot+"/")))
	b.mu.Unlock()
	return b.driver(handle)
}

// newBench has a volume forgotten at its path, and its NodeVolumes made.
func newBench(t *testing.T) *bench {
	b := &bench{machine: newMachine(t), server: apitest.Start(t), clock: testclock.NewFakeClock(time.Unix(1_700_000_000, 0))}
	b.config.Repair = true
	b.write("pod-resources/kubelet.sock", "")
	started := time.Unix(1_699_000_000, 0)
	if err := os.Chtimes(filepath.Join(b.config.KubeletRoot, "pod-resources/kubelet.sock"), started, started); err != nil {
		t.Fatal(err)
	}
	b.forget("vol-1")
	b.node = corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "uid-n1"}}
	b.node.Status.NodeInfo.BootID = look(b.config, "", nil).machine.BootID
	b.driver = func(string) error { b.unmount(); return nil }
	b.begin()
	rounds(t, b.agent, 1)
	return b
}

// begin begins the agent's process.
func (b *bench) begin() {
	b.t.Helper()
	b.agent = b.machine.agent(b.server)
	b.agent.nodes, b.agent.drivers, b.agent.orders.clock = b, b, b.clock
}

// forget leaves a volume staged, where a kubelet of today has it.
func (b *bench) forget(handle string) {
	b.t.Helper()
	path := nodevolumes.StagingPath(testDriver, handle)
	b.write(filepath.Dir(path)+"/vol_data.json", fmt.Sprintf(`{"driverName":%q,"volumeHandle":%q}`, testDriver, handle))
	if err := os.MkdirAll(filepath.Join(b.config.KubeletRoot, path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	b.record(handle, time.Unix(1_698_000_000, 0))
	b.mounts = append(b.mounts, path)
	b.table()
}

// record has the kubelet have written its record of a volume at a time.
func (b *bench) record(handle string, at time.Time) {
	b.t.Helper()
	name := filepath.Join(b.config.KubeletRoot, filepath.Dir(nodevolumes.StagingPath(testDriver, handle)), "vol_data.json")
	if err := os.Chtimes(name, at, at); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) unmount() {
	b.mounts = nil
	b.table()
}

// order orders that vol-1 be unstaged.
func (b *bench) order(number int64, change func(*v1alpha1.NodeUnstage)) {
	b.t.Helper()
	object := get(b.t, b.server)
	order := v1alpha1.NodeUnstage{Driver: testDriver, Handle: "vol-1", Number: number, BootID: object.Status.BootID, Seconds: 30}
	if object.Status.KubeletStarted != nil {
		order.KubeletStarted = *object.Status.KubeletStarted
	}
	if change != nil {
		change(&order)
	}
	object.Spec = v1alpha1.NodeVolumesSpec{Look: number, Unstage: []v1alpha1.NodeUnstage{order}}
	b.server.Put("nodevolumes", &object)
	b.see()
}

// see has the agent's watch show its object.
func (b *bench) see() {
	object := get(b.t, b.server)
	b.agent.told(&object)
}

// turn has the agent look, write and call, and write again when its calls are over.
func (b *bench) turn() {
	b.t.Helper()
	rounds(b.t, b.agent, 1)
	b.agent.calls.Wait()
	b.see()
	rounds(b.t, b.agent, 1)
}

// answer is what the node says of vol-1.
func (b *bench) answer() v1alpha1.NodeUnstaged {
	b.t.Helper()
	list := get(b.t, b.server).Status.Unstaged
	if len(list) != 1 {
		b.t.Fatalf("it answers %+v", list)
	}
	return list[0]
}

func (b *bench) said(result v1alpha1.UnstageResult, number int64, unanswered bool, message string) {
	b.t.Helper()
	a := b.answer()
	if a.Result != result || a.Number != number || a.Unanswered != unanswered || !strings.Contains(a.Message, message) || message == "" && a.Message != "" {
		b.t.Errorf("it says %+v, want %s %d unanswered=%t %q", a, result, number, unanswered, message)
	}
}

// A volume is unstaged as the kubelet would, and its records are removed; before that it is
// written that it is about to be.
func TestRepair(t *testing.T) {
	b := newBench(t)
	if status := get(t, b.server).Status; !status.Repairs || len(status.Volumes) != 1 || !status.Volumes[0].Forgotten {
		t.Fatalf("it says %+v", status)
	}
	b.order(5, nil)
	done := b.driver
	b.driver = func(handle string) error {
		b.said(v1alpha1.UnstageCalling, 5, true, "")
		return done(handle)
	}
	b.turn()
	b.said(v1alpha1.UnstageDone, 5, false, "")
	want := []string{testDriver + " vol-1 " + nodevolumes.StagingPath(testDriver, "vol-1")}
	if !slices.Equal(b.calls, want) {
		t.Errorf("it calls %q, want %q", b.calls, want)
	}
	if status := get(t, b.server).Status; len(status.Volumes) != 0 || status.Looked != 5 {
		t.Errorf("it says %+v", status)
	}
	folder := filepath.Join(b.config.KubeletRoot, filepath.Dir(nodevolumes.StagingPath(testDriver, "vol-1")))
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", folder, err)
	}
	b.turn()
	if len(b.calls) != 1 {
		t.Errorf("it carries the order out again: %q", b.calls)
	}
}

// A pod's record that was reported unread before the order keeps no volume: the order's author knew its
// PersistentVolume.
func TestRepairBesideUnreadRecord(t *testing.T) {
	b := newBench(t)
	b.write("pods/uid-b/volumes/kubernetes.io~csi/pv/vol_data.json", "{")
	b.turn()
	if status := get(t, b.server).Status; len(status.Volumes) != 2 || len(status.Unknown) > 0 {
		t.Fatalf("it says %+v", status)
	}
	b.order(5, nil)
	b.turn()
	b.said(v1alpha1.UnstageDone, 5, false, "")
}

// stagingRecord is where the kubelet has its record of a volume that is staged.
func stagingRecord(handle string) string {
	return filepath.Dir(nodevolumes.StagingPath(testDriver, handle)) + "/vol_data.json"
}

// A record of another volume's staging that can't be read keeps no volume: its folder says which
// one it is of.
func TestRepairBesideTornStaging(t *testing.T) {
	b := newBench(t)
	b.order(5, nil)
	b.write(stagingRecord("vol-2"), "")
	b.turn()
	b.said(v1alpha1.UnstageDone, 5, false, "")
}

// An order is refused, without a call, if it is not for this node's present state.
func TestRepairRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*v1alpha1.NodeUnstage)
		before  func(*bench)
		message string
	}{
		"another boot":              {func(o *v1alpha1.NodeUnstage) { o.BootID = "other" }, nil, "another boot"},
		"another start":             {func(o *v1alpha1.NodeUnstage) { o.KubeletStarted = metav1.Unix(1, 0) }, nil, "another start of the kubelet"},
		"it may not":                {nil, func(b *bench) { b.agent.orders.repair = false }, "without --repair"},
		"a pod's folder names it":   {nil, func(b *bench) { b.publish("vol-1") }, "a pod's folder names it"},
		"a record of this start":    {nil, func(b *bench) { b.record("vol-1", time.Unix(1_699_000_001, 0)) }, "has not forgotten it"},
		"a record that is unread":   {nil, func(b *bench) { b.write("pods/uid-b/volumes/kubernetes.io~csi/pv/vol_data.json", "{") }, "a record could not be read"},
		"its record is unread":      {nil, func(b *bench) { b.write(stagingRecord("vol-1"), "{") }, "its record could not be read"},
		"the Node names it":         {nil, func(b *bench) { b.attached("vol-1") }, "volumesAttached names it again"},
		"the Node was made again":   {nil, func(b *bench) { b.node.UID = "uid-2" }, "made again"},
		"the Node of another boot":  {nil, func(b *bench) { b.node.Status.NodeInfo.BootID = "other" }, "another boot"},
		"the Node can't be read":    {nil, func(b *bench) { b.nodeErr = errors.New("no") }, "can't be read"},
		"it is read later than due": {nil, func(b *bench) { b.clock.Step(31 * time.Second) }, "within 30 s"},
		"this process began later":  {nil, func(b *bench) { b.begin() }, "before this process"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.order(5, test.change)
			if test.before != nil {
				test.before(b)
			}
			b.turn()
			b.said(v1alpha1.UnstageRefused, 5, false, test.message)
			if len(b.calls) > 0 {
				t.Errorf("it calls %q", b.calls)
			}
		})
	}
}

// publish has a pod's folder name a volume.
func (b *bench) publish(handle string) {
	b.write("pods/uid-b/volumes/kubernetes.io~csi/pv/vol_data.json", fmt.Sprintf(`{"driverName":%q,"volumeHandle":%q,"specVolID":"pv"}`, testDriver, handle))
}

// attached has volumesAttached of the Node name a volume.
func (b *bench) attached(handle string) {
	b.node.Status.VolumesAttached = []corev1.AttachedVolume{{Name: corev1.UniqueVolumeName("kubernetes.io/csi/" + testDriver + "^" + handle)}}
}

// A volume that a pod has got since it was written that it is about to be unstaged is not.
func TestRepairLooksOnceMore(t *testing.T) {
	b := newBench(t)
	b.order(5, nil)
	first := true
	b.agent.look = func([]nodevolumes.Alive) sight {
		if !first {
			b.publish("vol-1")
		}
		first = false
		return look(b.config, "", nil)
	}
	b.turn()
	b.said(v1alpha1.UnstageRefused, 5, false, "a pod's folder names it")
	if len(b.calls) > 0 {
		t.Errorf("it calls %q", b.calls)
	}
}

// No call follows an order that was withdrawn, or whose object was deleted, before its announcement was
// written.
func TestRepairIsWithdrawn(t *testing.T) {
	for name, change := range map[string]func(*bench){
		"withdrawn": func(b *bench) {
			object := get(b.t, b.server)
			object.Spec.Unstage = nil
			b.server.Put("nodevolumes", &object)
		},
		"deleted": func(b *bench) { b.server.Remove("nodevolumes", "", "n1") },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.order(5, nil)
			change(b)
			if err := b.agent.round(t.Context()); err == nil {
				t.Error("it writes what it has read before")
			}
			b.agent.calls.Wait()
			rounds(t, b.agent, 2)
			if len(b.calls) > 0 {
				t.Errorf("it calls %q", b.calls)
			}
			if list := get(t, b.server).Status.Unstaged; len(list) > 0 {
				t.Errorf("it says %+v", list)
			}
		})
	}
}

// A call that the driver has not answered with success may have its effect later: that is said
// until it has answered another one, also by the next process, and in another object.
func TestRepairUnanswered(t *testing.T) {
	b := newBench(t)
	done := b.driver
	b.driver = func(string) error { return errors.New("it is busy") }
	b.order(5, nil)
	b.turn()
	b.said(v1alpha1.UnstageFailed, 5, true, "it is busy")
	b.order(6, func(o *v1alpha1.NodeUnstage) { o.BootID = "other" })
	b.turn()
	b.said(v1alpha1.UnstageRefused, 6, true, "another boot")
	b.begin()
	b.turn()
	b.said(v1alpha1.UnstageRefused, 6, true, "another boot")
	b.order(7, nil)
	b.server.Remove("nodevolumes", "", "n1")
	gone := v1alpha1.NodeVolumes{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	b.agent.gone(&gone)
	rounds(t, b.agent, 1)
	b.said(v1alpha1.UnstageRefused, 6, true, "another boot")
	if len(b.calls) != 1 {
		t.Fatalf("it calls %q", b.calls)
	}
	b.driver = done
	b.order(3, nil)
	b.turn()
	b.said(v1alpha1.UnstageRefused, 6, true, "another boot")
	b.order(8, nil)
	b.turn()
	b.said(v1alpha1.UnstageDone, 8, false, "")
}

// A driver that says by now that it stages no volumes has not answered the call of before.
func TestRepairByADriverThatStagesNone(t *testing.T) {
	b := newBench(t)
	done := b.driver
	b.driver = func(string) error { return errors.New("it is busy") }
	b.order(5, nil)
	b.turn()
	b.unmount()
	b.stagesNone = true
	b.order(6, nil)
	b.turn()
	b.said(v1alpha1.UnstageRefused, 6, true, "does not stage volumes")
	b.stagesNone, b.driver = false, done
	b.order(7, nil)
	b.turn()
	b.said(v1alpha1.UnstageDone, 7, false, "")
}

// A process that can't read the boot at first does not take earlier calls for another boot's.
func TestRepairUnansweredWithoutABoot(t *testing.T) {
	b := newBench(t)
	b.driver = func(string) error { return errors.New("it is busy") }
	b.order(5, nil)
	b.turn()
	file := b.config.BootID
	b.config.BootID = ""
	b.begin()
	b.turn()
	b.agent.config.BootID = file
	b.order(6, func(o *v1alpha1.NodeUnstage) { o.BootID = "other" })
	b.turn()
	b.said(v1alpha1.UnstageRefused, 6, true, "another boot")
}

// The process that announced a call has ended: the call may have been made.
func TestRepairByANewProcess(t *testing.T) {
	b := newBench(t)
	b.order(5, nil)
	object := get(t, b.server)
	object.Status.Unstaged = []v1alpha1.NodeUnstaged{{Driver: testDriver, Handle: "vol-1", Number: 5, Result: v1alpha1.UnstageCalling, Unanswered: true}}
	b.server.Put("nodevolumes", &object)
	b.begin()
	b.see()
	b.turn()
	b.said(v1alpha1.UnstageRefused, 5, true, "before this process")
	b.order(6, nil)
	b.turn()
	b.said(v1alpha1.UnstageDone, 6, false, "")
}

// A volume that is still mounted after the driver's answer is not taken for unstaged, and its record
// stays; but no call is left that may take effect later.
func TestRepairOfWhatStaysMounted(t *testing.T) {
	b := newBench(t)
	b.driver = func(string) error { return nil }
	b.order(5, nil)
	b.turn()
	b.said(v1alpha1.UnstageFailed, 5, false, "not known that nothing is mounted")
	if status := get(t, b.server).Status; len(status.Volumes) != 1 || status.Volumes[0].Staged != v1alpha1.NodeYes {
		t.Errorf("it says %+v", status)
	}
}

// The driver has answered, and a file lies in the folder of the mount: no call is open, and the status
// says which folder to empty.
func TestRepairOfWhatIsNotEmpty(t *testing.T) {
	b := newBench(t)
	folder := nodevolumes.StagingPath(testDriver, "vol-1")
	b.write(folder+"/left", "x")
	b.order(5, nil)
	b.turn()
	b.said(v1alpha1.UnstageFailed, 5, false, "the driver has answered that nothing is left, but globalmount can't be removed: directory not empty")
	if said := b.answer().Message; !strings.HasSuffix(said, filepath.Dir(folder)+", unmount and empty it, and remove that folder") {
		t.Errorf("it says %s", said)
	}
	if err := os.Remove(filepath.Join(b.config.KubeletRoot, folder, "left")); err != nil {
		t.Fatal(err)
	}
	b.order(6, nil)
	b.turn()
	b.said(v1alpha1.UnstageDone, 6, false, "")
}

// A missing driver was not called: nothing is open, and earlier open calls stay open.
func TestRepairWithoutItsDriver(t *testing.T) {
	b := newBench(t)
	b.agent.drivers = drivers{b.config.KubeletRoot}
	b.order(5, nil)
	b.turn()
	b.said(v1alpha1.UnstageRefused, 5, false, "the driver could not be called: look for driver "+testDriver)
	b.write("plugins_registry/x", "")
	b.order(6, nil)
	b.turn()
	b.said(v1alpha1.UnstageRefused, 6, false, "is not registered with the kubelet")
	b.agent.drivers, b.driver = b, func(string) error { return errors.New("it is busy") }
	b.order(7, nil)
	b.turn()
	b.said(v1alpha1.UnstageFailed, 7, true, "it is busy")
	b.agent.drivers = drivers{b.config.KubeletRoot}
	b.order(8, nil)
	b.turn()
	b.said(v1alpha1.UnstageRefused, 8, true, "is not registered with the kubelet")
}

// That a call is about to be made was written, and the answer to the write was lost: no call
// follows, and that is said, also when the order is withdrawn meanwhile.
func TestRepairAnnouncedUnknown(t *testing.T) {
	b := newBench(t)
	b.order(5, nil)
	lost := true
	b.server.Intercept(func(r apitest.Request, serve func()) error {
		serve()
		if r.Verb == "update" && lost {
			lost = false
			return errors.New("the answer is lost")
		}
		return nil
	})
	if err := b.agent.round(t.Context()); err == nil {
		t.Error("the write went well")
	}
	b.said(v1alpha1.UnstageCalling, 5, true, "")
	object := get(t, b.server)
	object.Spec.Unstage = nil
	b.server.Put("nodevolumes", &object)
	b.turn()
	b.said(v1alpha1.UnstageRefused, 5, false, "it could not be written")
	if len(b.calls) > 0 {
		t.Errorf("it calls %q", b.calls)
	}
}

// Orders that begin together need one read of the Node, after it was written that they begin:
// the client lets few requests through at a time.
func TestRepairReadsTheNodeOnce(t *testing.T) {
	b := newBench(t)
	b.order(5, nil)
	object := get(t, b.server)
	for i := range int64(maxCalls - 1) {
		next := object.Spec.Unstage[0]
		next.Handle, next.Number = fmt.Sprintf("other-%d", i), 6+i
		b.forget(next.Handle)
		object.Spec.Unstage = append(object.Spec.Unstage, next)
	}
	b.server.Put("nodevolumes", &object)
	b.see()
	b.driver = func(string) error { return errors.New("it is busy") }
	b.turn()
	if len(b.calls) != maxCalls || b.reads != 1 {
		t.Errorf("it calls %d times, and reads the Node %d times", len(b.calls), b.reads)
	}
}

// A driver that hangs delays neither looks nor another volume.
func TestRepairBesideAHangingDriver(t *testing.T) {
	b := newBench(t)
	b.forget("vol-2")
	hangs, release := make(chan struct{}), make(chan struct{})
	b.driver = func(handle string) error {
		if handle == "vol-1" {
			close(hangs)
			<-release
		}
		return errors.New("it has hung")
	}
	b.order(5, nil)
	rounds(t, b.agent, 1)
	<-hangs
	object := get(t, b.server)
	second := object.Spec.Unstage[0]
	second.Handle, second.Number = "vol-2", 6
	object.Spec.Unstage, object.Spec.Look = append(object.Spec.Unstage, second), 6
	b.server.Put("nodevolumes", &object)
	b.see()
	<-b.agent.asked // by that
	rounds(t, b.agent, 1)
	<-b.agent.ended // vol-2's call
	b.see()
	rounds(t, b.agent, 1)
	status := get(t, b.server).Status
	if status.Looked != 6 || len(status.Unstaged) != 2 || status.Unstaged[0].Result != v1alpha1.UnstageCalling || status.Unstaged[1].Result != v1alpha1.UnstageFailed {
		t.Errorf("it says %+v", status.Unstaged)
	}
	close(release)
	b.agent.calls.Wait()
}

// hanging is a driver that answers no call, and a Node.
type hanging struct{ node corev1.Node }

func (h *hanging) Get(context.Context, string, metav1.GetOptions) (*corev1.Node, error) {
	return &h.node, nil
}

func (h *hanging) Unstage(ctx context.Context, _, _, _ string, calls func()) error {
	calls()
	<-ctx.Done()
	return ctx.Err()
}

// late is a fake that takes a while to write.
type late struct {
	*fake
	takes time.Duration
}

func (l *late) UpdateStatus(ctx context.Context, object *v1alpha1.NodeVolumes, options metav1.UpdateOptions) (*v1alpha1.NodeVolumes, error) {
	time.Sleep(l.takes)
	return l.fake.UpdateStatus(ctx, object, options)
}

// A waiting order is answered when its time is over, and not only when a hanging driver is given up:
// while it stands it takes the place of others, also of other drivers. That holds as well if the time
// is over during the write of an earlier look.
func TestOrdersThatWaitEndByTheirTime(t *testing.T) {
	for _, look := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) { ordersThatWait(t, look) })
	}
}

// ordersThatWait is the test, where the node is looked at shortly before the time is over, or is not.
func ordersThatWait(t *testing.T, look bool) {
	f, h := &late{fake: &fake{}, takes: time.Second}, &hanging{}
	h.node.UID, h.node.Status.NodeInfo.BootID = "uid-n1", "boot"
	f.object.Name = "n1"
	started := time.Now().Add(-time.Hour)
	config := DefaultConfig()
	config.Repair = true
	var mounted atomic.Bool
	a := newAgent(config, f, "n1", "uid-n1", func([]nodevolumes.Alive) sight {
		s := sight{machine: nodevolumes.Machine{BootID: "boot", KubeletStarted: started}}
		if mounted.Load() {
			s.facts.Volumes = []nodevolumes.Volume{{Driver: "other.example.com", Handle: "other", Path: "other"}}
		}
		return s
	})
	a.nodes, a.drivers = h, h
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := a.run(ctx); err != nil {
			t.Error(err)
		}
	})
	time.Sleep(2 * f.takes)
	ordered := f.object.DeepCopy()
	ordered.Spec.Look = maxCalls + 1
	for i := range int64(maxCalls + 1) {
		ordered.Spec.Unstage = append(ordered.Spec.Unstage, v1alpha1.NodeUnstage{
			Driver: testDriver, Handle: fmt.Sprint("vol-", i), Number: i + 1, BootID: "boot", KubeletStarted: metav1.NewTime(started), Seconds: 30,
		})
	}
	a.told(ordered)
	time.Sleep(30*time.Second - config.Gather - f.takes/2)
	if look {
		mounted.Store(true)
		signal(a.changed)
	}
	time.Sleep(10 * time.Second)
	if answers := f.object.Status.Unstaged; len(answers) != maxCalls+1 || answers[maxCalls].Result != v1alpha1.UnstageRefused {
		t.Errorf("looked at before: %t; of %d orders, of which one waits for its turn, %d are answered: %+v", look, maxCalls+1, len(answers), answers)
	}
	cancel()
	running.Wait()
	a.calls.Wait()
}
