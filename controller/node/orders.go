// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/nodevolumes"
)

// How many calls to unstage volumes are under way at a time, and how many may be unanswered.
const (
	// maxCalls is for each driver: a hanging driver delays no volume of another.
	maxCalls = 8
	// maxAgain is how many of a driver's calls may be for volumes with an unanswered call: the rest are
	// for volumes that are not known to hang.
	maxAgain = maxCalls / 2
	// maxUnanswered is the number of a node's volumes that may have unanswered calls. Each is in the
	// status until it is answered, and there is room for the answers to all orders beside them. A
	// driver has at most as many of these places as it leaves to others: a hanging driver stops no
	// other.
	maxUnanswered = v1alpha1.MaxUnstaged - v1alpha1.MaxUnstage
)

// orders has this process's knowledge of orders to unstage volumes, and their outcomes. It is safe for
// parallel use.
//
// Before a call it is written that the call is about to be made, at the order's version: a controller
// that has withdrawn the order, at a version without that, knows that no call follows. A call may take
// effect after this process has ended: it is Unanswered until the driver has answered the last call
// with success.
type orders struct {
	repair bool // orders may be carried out
	clock  clock.PassiveClock

	mu sync.Mutex
	// object is the UID of the NodeVolumes whose orders were read, and before the highest number found
	// there first: its age is unknown here.
	object string
	before int64
	first  map[int64]*firstRead
	known  map[volumeKey]*answer
}

// firstRead is when an order was read first, and the unread records of pods and block volumes in the
// status beside it. Only this node writes the status, and the order was written at its version: the
// controller knew them.
type firstRead struct {
	at     time.Time
	unread map[string]bool // by path
	waits  bool            // other volumes of the driver were unstaged when it could have begun
	lasts  time.Duration   // from when it was read it may be begun for so long
}

type volumeKey struct{ driver, handle string }

// answer has the facts about the orders for one volume.
type answer struct {
	said v1alpha1.NodeUnstaged
	// open: a call was made, by this process or one before, that the driver has not yet
	// answered with success.
	open bool
	// running: this process is about to call, or calls; again: though an earlier call is open.
	running, again bool
}

func newOrders(repair bool, c clock.PassiveClock) *orders {
	return &orders{repair: repair, clock: c, first: map[int64]*firstRead{}, known: map[volumeKey]*answer{}}
}

func keyOf(o *v1alpha1.NodeUnstage) volumeKey { return volumeKey{o.Driver, o.Handle} }

// read takes in an object as early as possible: orders, and an earlier process's calls in this boot.
func (o *orders) read(object *v1alpha1.NodeVolumes, bootID string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.note(object)
	if bootID != "" && object.Status.BootID != "" && object.Status.BootID != bootID {
		return // its calls have ended with that boot
	}
	for _, said := range object.Status.Unstaged {
		if key := (volumeKey{said.Driver, said.Handle}); o.known[key] == nil {
			o.known[key] = &answer{said: said, open: said.Unanswered || said.Result == v1alpha1.UnstageCalling}
		}
	}
}

// noted takes in since when there are orders.
func (o *orders) noted(object *v1alpha1.NodeVolumes) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.note(object)
}

// note is noted. The caller has the lock.
func (o *orders) note(object *v1alpha1.NodeVolumes) {
	if uid := string(object.UID); uid != o.object {
		o.object, o.before, o.first = uid, 0, map[int64]*firstRead{}
		for i := range object.Spec.Unstage {
			o.before = max(o.before, object.Spec.Unstage[i].Number)
		}
	}
	now, stands := o.clock.Now(), map[int64]bool{}
	for i := range object.Spec.Unstage {
		number := object.Spec.Unstage[i].Number
		stands[number] = true
		if _, read := o.first[number]; !read {
			o.first[number] = &firstRead{at: now, unread: unreadRecords(object), lasts: time.Duration(object.Spec.Unstage[i].Seconds) * time.Second}
		}
	}
	maps.DeleteFunc(o.first, func(number int64, _ *firstRead) bool { return !stands[number] })
}

// begin answers an object's orders that can't be carried out, and returns the orders to announce: their
// calls follow once that is written.
func (o *orders) begin(object *v1alpha1.NodeVolumes, s sight) []v1alpha1.NodeUnstage {
	o.mu.Lock()
	defer o.mu.Unlock()
	var begun []v1alpha1.NodeUnstage
	for i := range object.Spec.Unstage {
		order := object.Spec.Unstage[i]
		a := o.known[keyOf(&order)]
		if a != nil && (a.running || a.said.Number > order.Number || a.said.Number == order.Number && a.said.Result != v1alpha1.UnstageCalling) {
			continue
		}
		if why := o.refuses(&order, s); why != "" {
			o.say(&order, v1alpha1.UnstageRefused, why)
			continue
		}
		again := a != nil && a.open
		is := o.calling(order.Driver)
		switch {
		case !again && is.own >= mayHave(is.others):
			o.say(&order, v1alpha1.UnstageRefused, is.full(order.Driver))
			continue
		case !again && is.own+is.running-is.again >= mayHave(is.others+is.othersNew), is.running >= maxCalls, again && is.again >= maxAgain:
			o.first[order.Number].waits = true
			continue // it has its turn, or is over by then
		}
		if a == nil {
			a = &answer{}
			o.known[keyOf(&order)] = a
		}
		a.running, a.again = true, again
		begun = append(begun, order)
	}
	return begun
}

// left is how long after a look the time of the first waiting order is over: it is answered at that
// time, since it takes the place of others while it stands. 0: none waited.
func (o *orders) left(looked time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	least := time.Duration(0)
	for _, first := range o.first {
		left := first.lasts - looked.Sub(first.at)
		if first.waits && left > 0 && (least == 0 || left < least) {
			least = left
		}
	}
	return least
}

// calling is how many volumes of a node have calls, as a driver sees it.
type calling struct {
	// own are the driver's volumes with an overdue call, and others those of all other drivers.
	own, others int
	// running are the driver's volumes with a call under way, and again the volumes among them in own;
	// othersNew are other drivers' volumes not in others.
	running, again, othersNew int
}

// mayHave is how many of a driver's volumes may have unanswered calls beside all other drivers' volumes.
func mayHave(others int) int { return max(0, maxUnanswered-others+1) / 2 }

// full says why no call begins for another volume of a driver.
func (c calling) full(driver string) string {
	return fmt.Sprintf("driver %s has unanswered calls for %d volumes of this node, and may have %d beside %d of other drivers (at most %d together). "+
		"See why it does not answer, and restart its node plugin; if it never will answer, reboot the machine", driver, c.own, mayHave(c.others), c.others, maxUnanswered)
}

// calling counts the volumes with calls. The caller has the lock.
func (o *orders) calling(driver string) (c calling) {
	for key, a := range o.known {
		hangs := a.open && (!a.running || a.again)
		switch {
		case key.driver != driver && hangs:
			c.others++
		case key.driver != driver && a.running:
			c.othersNew++
		case key.driver == driver && hangs:
			c.own++
		}
		if key.driver == driver && a.running {
			c.running++
			if a.again {
				c.again++
			}
		}
	}
	return c
}

// refuses says why an order is not carried out, as far as a look shows; empty: it is. The
// caller has the lock.
func (o *orders) refuses(order *v1alpha1.NodeUnstage, s sight) string {
	first, read := o.first[order.Number]
	started := s.machine.KubeletStarted.Truncate(time.Second)
	switch {
	case !o.repair:
		return "moorage-node runs there without --repair"
	case order.Number <= o.before || !read:
		return "the order is of before this process began, and nobody here knows how old it is"
	case order.BootID != s.machine.BootID:
		return "the order is of another boot"
	case s.machine.KubeletStarted.IsZero() || !order.KubeletStarted.Time.Equal(started):
		return "the order is of another start of the kubelet"
	case o.clock.Since(first.at) >= time.Duration(order.Seconds)*time.Second:
		if first.waits {
			return fmt.Sprintf("it was not begun within %d s, as other volumes of driver %s are being unstaged", order.Seconds, order.Driver)
		}
		return fmt.Sprintf("it was not begun within %d s", order.Seconds)
	}
	return forbids(s, order.Driver, order.Handle, first.unread)
}

// forbids says why a volume must not be unstaged, by a look; empty: it may be. A volume that is not
// there any more may: the driver has nothing to do, and says so. An unreadable record of a pod or a
// block volume may be of any volume here, except the records that the order's author knew, and whose
// PersistentVolumes it can resolve; a staging record is of the volume whose handle has the folder's
// digest. A record younger than the kubelet's start is of a volume that this kubelet is staging, or has
// staged: it has not forgotten it, and may also call the driver.
func forbids(s sight, driver, handle string, unread map[string]bool) string {
	f := s.facts
	if len(f.Unknown) > 0 {
		return "not everything at the node could be read"
	}
	if asked := (&nodevolumes.Volume{Driver: driver, Handle: handle}).Brief(); slices.Contains(f.Unlisted, asked[0]) {
		return "there are more volumes at the node than are looked at one by one"
	}
	for i := range f.Volumes {
		v := &f.Volumes[i]
		switch {
		case v.Handle == "" && v.PersistentVolume != "" && !unread[v.Path]:
			return fmt.Sprintf("a record could not be read: %s", v.Unknown)
		case v.Handle != handle && v.Path == nodevolumes.StagingPath(driver, handle):
			return fmt.Sprintf("its record could not be read: %s", v.Unknown)
		case v.Driver != driver || v.Handle != handle:
		case v.Mode != nodevolumes.Filesystem:
			return "it is a block volume, which is not unstaged by moorage-node"
		case len(v.Published) > 0 || !v.Forgotten:
			return "a pod's folder names it"
		case v.Unknown != "":
			return v.Unknown
		case v.Staged != nodevolumes.Yes:
			return "it is not known to be staged"
		case v.Path != nodevolumes.StagingPath(driver, handle):
			return "it is staged at a path of an older kubelet"
		case v.Recorded.IsZero() || !v.Recorded.Before(s.machine.KubeletStarted):
			return "the kubelet has recorded it since it began, and has not forgotten it"
		}
	}
	return ""
}

// unreadRecords are the paths of a status's unreadable records whose folders have a PersistentVolume's
// name.
func unreadRecords(object *v1alpha1.NodeVolumes) map[string]bool {
	var paths map[string]bool
	for i := range object.Status.Volumes {
		if v := &object.Status.Volumes[i]; v.Handle == "" && v.PersistentVolume != "" {
			if paths == nil {
				paths = map[string]bool{}
			}
			paths[v.Path] = true
		}
	}
	return paths
}

// allowed says once more whether an order is carried out, before its call.
func (o *orders) allowed(order *v1alpha1.NodeUnstage, s sight) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.refuses(order, s)
}

// calls notes that the driver is called now.
func (o *orders) calls(order *v1alpha1.NodeUnstage) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if a := o.known[keyOf(order)]; a != nil {
		a.open = true
	}
}

// isOpen says whether a call for a volume has no answer.
func (o *orders) isOpen(order *v1alpha1.NodeUnstage) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	a := o.known[keyOf(order)]
	return a != nil && a.open
}

// answered notes that the driver has answered the last call with success.
func (o *orders) answered(order *v1alpha1.NodeUnstage) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if a := o.known[keyOf(order)]; a != nil {
		a.open = false
	}
}

// ended notes what came of an order that was begun.
func (o *orders) ended(order *v1alpha1.NodeUnstage, result v1alpha1.UnstageResult, why string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.say(order, result, why)
}

// forget ends announced orders whose announcement could not be written: no call follows. If it may have
// been written all the same, the next status says that none does.
func (o *orders) forget(begun []v1alpha1.NodeUnstage, written error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range begun {
		if a := o.known[keyOf(&begun[i])]; a != nil {
			a.running = false
		}
		if !unwritten(written) {
			o.say(&begun[i], v1alpha1.UnstageRefused, fmt.Sprintf("it could not be written that the driver is about to be called: %v", written))
		}
	}
}

// unwritten says whether the API server has answered that it did not write.
func unwritten(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err)
}

// say notes what came of an order. The caller has the lock.
func (o *orders) say(order *v1alpha1.NodeUnstage, result v1alpha1.UnstageResult, why string) {
	a := o.known[keyOf(order)]
	if a == nil {
		a = &answer{}
		o.known[keyOf(order)] = a
	}
	a.running = false
	a.said = v1alpha1.NodeUnstaged{
		Driver: order.Driver, Handle: order.Handle, Number: order.Number, Result: result, Unanswered: a.open, Message: cut(why),
	}
}

// said are the answers, with the orders to announce. If an object has no room for all, answers that
// nothing depends on are left out, and then, as after a process with more open calls, answers to the
// latest orders: they are answered after a later look.
func (o *orders) said(begun []v1alpha1.NodeUnstage) []v1alpha1.NodeUnstaged {
	o.mu.Lock()
	defer o.mu.Unlock()
	begins := map[volumeKey]*v1alpha1.NodeUnstage{}
	for i := range begun {
		begins[keyOf(&begun[i])] = &begun[i]
	}
	var list []v1alpha1.NodeUnstaged
	for key, a := range o.known {
		switch order := begins[key]; {
		case order != nil:
			list = append(list, v1alpha1.NodeUnstaged{Driver: key.driver, Handle: key.handle, Number: order.Number, Result: v1alpha1.UnstageCalling, Unanswered: true})
		case a.said.Number > 0:
			list = append(list, a.said)
		}
	}
	slices.SortFunc(list, func(a, b v1alpha1.NodeUnstaged) int {
		if order := cmp.Compare(o.weight(&a), o.weight(&b)); order != 0 {
			return order
		}
		if o.first[a.Number] != nil {
			return cmp.Compare(a.Number, b.Number)
		}
		return cmp.Compare(b.Number, a.Number)
	})
	for _, a := range list[min(len(list), v1alpha1.MaxUnstaged):] {
		if !a.Unanswered {
			delete(o.known, volumeKey{a.Driver, a.Handle})
		}
	}
	list = list[:min(len(list), v1alpha1.MaxUnstaged)]
	slices.SortFunc(list, func(a, b v1alpha1.NodeUnstaged) int {
		return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Handle, b.Handle))
	})
	return list
}

// weight is lower the more hangs on an answer. The caller has the lock.
func (o *orders) weight(a *v1alpha1.NodeUnstaged) int {
	switch {
	case a.Unanswered:
		return 0
	case o.first[a.Number] != nil: // its order stands in the object
		return 1
	}
	return 2
}

// written notes that it was written which orders are begun.
func (o *orders) written(begun []v1alpha1.NodeUnstage) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range begun {
		order := &begun[i]
		if a := o.known[keyOf(order)]; a != nil {
			a.said = v1alpha1.NodeUnstaged{Driver: order.Driver, Handle: order.Handle, Number: order.Number, Result: v1alpha1.UnstageCalling, Unanswered: true}
		}
	}
}

// cut is a message as the object takes it.
func cut(why string) string {
	letters := []rune(why)
	return string(letters[:min(len(letters), v1alpha1.MaxNodeReasonRunes)])
}
