// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/nodevolumes"
)

// ordering is what a process knows of orders, at a node where nothing is staged any more, so
// that each order may be carried out.
type ordering struct {
	*orders
	clock  *testclock.FakeClock
	sight  sight
	object *v1alpha1.NodeVolumes
}

func newOrdering() *ordering {
	c := testclock.NewFakeClock(time.Unix(1_700_000_000, 0))
	x := &ordering{orders: newOrders(true, c), clock: c, object: &v1alpha1.NodeVolumes{ObjectMeta: metav1.ObjectMeta{UID: "object"}}}
	x.sight.machine = nodevolumes.Machine{BootID: "boot", KubeletStarted: time.Unix(1_699_000_000, 0)}
	x.read(x.object, "boot")
	return x
}

// order gives an order for each volume and returns the begun ones.
func (x *ordering) order(volumes ...volumeKey) (begun []v1alpha1.NodeUnstage) {
	for _, v := range volumes {
		x.object.Spec.Unstage = append(x.object.Spec.Unstage, v1alpha1.NodeUnstage{
			Driver: v.driver, Handle: v.handle, Number: int64(len(x.object.Spec.Unstage) + 1),
			BootID: "boot", KubeletStarted: metav1.NewTime(x.sight.machine.KubeletStarted), Seconds: 30,
		})
	}
	return x.again()
}

// again looks at the orders that there are.
func (x *ordering) again() []v1alpha1.NodeUnstage {
	x.noted(x.object)
	return x.begin(x.object, x.sight)
}

// fail has the driver answer with an error.
func (x *ordering) fail(begun []v1alpha1.NodeUnstage) {
	x.written(begun)
	for i := range begun {
		x.calls(&begun[i])
		x.ended(&begun[i], v1alpha1.UnstageFailed, "the storage does not answer")
	}
}

// said returns a volume's status.
func (x *ordering) of(v volumeKey) (v1alpha1.NodeUnstaged, bool) {
	for _, a := range x.said(nil) {
		if a.Driver == v.driver && a.Handle == v.handle {
			return a, true
		}
	}
	return v1alpha1.NodeUnstaged{}, false
}

func volumes(driver string, count int) (list []volumeKey) {
	for i := range count {
		list = append(list, volumeKey{driver, fmt.Sprintf("vol-%03d", i)})
	}
	return list
}

// Each unanswered call is reported until it is answered: no call begins without room for that.
func TestUnansweredCallsAreAllTold(t *testing.T) {
	x := newOrdering()
	list := volumes(testDriver, 2*v1alpha1.MaxUnstaged)
	called := map[string]bool{}
	for begun := x.order(list...); len(begun) > 0; begun = x.again() {
		for _, order := range begun {
			called[order.Handle] = true
		}
		x.fail(begun)
	}
	if len(called) != mayHave(0) {
		t.Errorf("the driver was called for %d volumes", len(called))
	}
	for _, v := range list {
		if said, _ := x.of(v); called[v.handle] != said.Unanswered {
			t.Errorf("volume %s was called for: %t; it is told: %+v", v.handle, called[v.handle], said)
		}
	}
	// A hanging call may be repeated, and ends.
	x.object.Spec.Unstage = nil
	x.noted(x.object)
	order := v1alpha1.NodeUnstage{Driver: testDriver, Handle: list[0].handle, Number: 1000, BootID: "boot", KubeletStarted: metav1.NewTime(x.sight.machine.KubeletStarted), Seconds: 30}
	next := v1alpha1.NodeUnstage{Driver: testDriver, Handle: list[len(list)-1].handle, Number: 1001, BootID: "boot", KubeletStarted: order.KubeletStarted, Seconds: 30}
	x.object.Spec.Unstage = []v1alpha1.NodeUnstage{next, order}
	if begun := x.again(); len(begun) != 1 || begun[0].Handle != order.Handle {
		t.Fatalf("of one that hangs and a new one, %+v are begun", begun)
	}
	if said, _ := x.of(list[len(list)-1]); said.Result != v1alpha1.UnstageRefused || !strings.Contains(said.Message, "driver disk.example.com has unanswered calls for 16 volumes of this node, and may have 16 beside 0 of other drivers (at most 32 together)") {
		t.Errorf("the new one is told %+v", said)
	}
	x.written([]v1alpha1.NodeUnstage{order})
	x.calls(&order)
	x.answered(&order)
	x.ended(&order, v1alpha1.UnstageDone, "")
	next.Number = 1002
	x.object.Spec.Unstage = []v1alpha1.NodeUnstage{next}
	if begun := x.again(); len(begun) != 1 {
		t.Errorf("one call is answered, and no new one begins: %+v", begun)
	}
}

// replace has only orders for these volumes stand, from a number on, and returns the begun ones.
func (x *ordering) replace(number int64, volumes ...volumeKey) []v1alpha1.NodeUnstage {
	x.object.Spec.Unstage = nil
	for i, v := range volumes {
		x.object.Spec.Unstage = append(x.object.Spec.Unstage, v1alpha1.NodeUnstage{
			Driver: v.driver, Handle: v.handle, Number: number + int64(i), BootID: "boot", KubeletStarted: metav1.NewTime(x.sight.machine.KubeletStarted), Seconds: 30,
		})
	}
	return x.again()
}

// Drivers that have not answered for as many volumes as they may stop no other driver, and each
// call is told of beside the answers to all orders.
func TestUnansweredCallsOfOtherDrivers(t *testing.T) {
	x := newOrdering()
	open := 0
	for i, want := range []int{16, 8, 4, 2, 1} {
		list := volumes(fmt.Sprintf("gone-%d.example.com", i), v1alpha1.MaxUnstage)
		for begun := x.replace(int64(100*(i+1)), list...); len(begun) > 0; begun = x.again() {
			x.fail(begun)
			want -= len(begun)
			open += len(begun)
		}
		if want != 0 {
			t.Errorf("driver %d: %d calls too few", i, want)
		}
		if begun := x.replace(int64(100*(i+1)+50), volumeKey{testDriver, "vol"}); len(begun) != 1 {
			t.Errorf("beside %d unanswered calls of others a driver is not called", open)
		} else {
			x.forget(begun, apierrors.NewConflict(schema.GroupResource{}, "n1", nil))
		}
	}
	list := volumes(testDriver, v1alpha1.MaxUnstage)
	x.fail(x.replace(1000, list...))
	x.replace(2000, list...)
	for _, v := range list {
		if said, told := x.of(v); !told || said.Number < 1000 {
			t.Errorf("of %s it says %+v", v.handle, said)
		}
	}
}

// If a former process has left more calls open than there may be, refusals without room are reported
// once others' orders are gone.
func TestRefusalsWithoutRoom(t *testing.T) {
	x := newOrdering()
	x.known = map[volumeKey]*answer{}
	for _, v := range volumes("gone.example.com", v1alpha1.MaxUnstaged*3/4) {
		x.object.Status.Unstaged = append(x.object.Status.Unstaged, v1alpha1.NodeUnstaged{Driver: v.driver, Handle: v.handle, Number: 1, Result: v1alpha1.UnstageFailed, Unanswered: true})
	}
	x.object.Status.BootID = "boot"
	x.read(x.object, "boot")
	stands := volumes(testDriver, v1alpha1.MaxUnstage)
	for number := int64(100); len(stands) > 0; number += 100 {
		x.replace(number, stands...)
		said := map[volumeKey]bool{}
		for _, a := range x.said(nil) {
			said[volumeKey{a.Driver, a.Handle}] = a.Number >= number
		}
		left := slices.DeleteFunc(slices.Clone(stands), func(v volumeKey) bool { return said[v] })
		if len(left) == len(stands) {
			t.Fatalf("of %d orders none is answered", len(left))
		}
		stands = left
	}
}

// A driver that hangs takes the turns of its own volumes only, and the volumes that are known
// to hang take no more than half of them.
func TestTurnsOfDrivers(t *testing.T) {
	x := newOrdering()
	hang := volumes("hangs.example.com", 20)
	begun := x.order(hang...)
	if len(begun) != maxCalls {
		t.Fatalf("%d calls are under way", len(begun))
	}
	well := volumeKey{testDriver, "vol-1"}
	if begun := x.order(well); len(begun) != 1 || keyOf(&begun[0]) != well {
		t.Errorf("beside a driver that hangs %+v are begun", begun)
	}
	x.fail(begun)
	x.object.Spec.Unstage = nil
	x.noted(x.object)
	for i, v := range hang {
		x.object.Spec.Unstage = append(x.object.Spec.Unstage, v1alpha1.NodeUnstage{
			Driver: v.driver, Handle: v.handle, Number: int64(100 + i), BootID: "boot", KubeletStarted: metav1.NewTime(x.sight.machine.KubeletStarted), Seconds: 30})
	}
	again := 0
	for _, order := range x.again() {
		if order.Handle < hang[maxCalls].handle {
			again++
		}
	}
	if again != maxAgain {
		t.Errorf("of the volumes that are known to hang %d are called again beside new ones", again)
	}
	x.clock.Step(31 * time.Second)
	x.again()
	if said, _ := x.of(hang[19]); said.Result != v1alpha1.UnstageRefused || !strings.Contains(said.Message, "other volumes of driver hangs.example.com are being unstaged") {
		t.Errorf("one that had no turn is told %+v", said)
	}
}
