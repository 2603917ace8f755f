// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/test/sandbox/audit"
)

const controllerUser = "system:serviceaccount:moorage-system:moorage-controller"

func second(n int) time.Time { return time.Unix(int64(n), 0) }

func write(user, verb, resource, name string, code, received int) audit.Event {
	e := audit.Event{
		Stage: "ResponseComplete", Verb: verb, User: audit.User{Username: user}, Object: &audit.Object{Resource: resource, Name: name},
		Received: second(received), Finished: second(received + 1),
	}
	e.Response.Code = code
	return e
}

func TestMeterCounts(t *testing.T) {
	m := newMeter(nil, controllerUser, func(o *audit.Object) bool { return isBystander(o.Name) })
	node := write(loadUser, "patch", "nodes", "hollow-0001", 200, 1)
	node.Impersonated, node.Object.Subresource = &audit.User{Username: "system:node:hollow-0001"}, "status"
	for _, e := range []audit.Event{
		write(controllerUser, "create", "volumeattachments", "csi-1", 201, 5),
		write(controllerUser, "create", "volumeattachments", "csi-2", 201, 3), // later in the log, earlier received: the first in the log counts
		write(controllerUser, "update", "volumeholds", "vh-1", 200, 6),
		write(controllerUser, "update", "volumeholds", "vh-1", 200, 7),
		write(controllerUser, "update", "volumeholds", "vh-1", 409, 8),
		write(controllerUser, "create", "events", "", 201, 100),
		write(controllerUser, "update", "volumeholds", "bystander-0001", 200, 200),
		write(loadUser, "create", "pods", "w-00001-g1", 201, 9),
		write("another", "create", "pods", "p", 201, 9),
		node,
	} {
		m.see(e)
	}
	if m.created != second(5) {
		t.Errorf("the first VolumeAttachment is of %v, want 5 s", m.created.Unix())
	}
	if m.last != second(9) {
		t.Errorf("the last write is answered at %v, want 9 s: events and bystanders don't count", m.last.Unix())
	}
	m.log = audit.Begin(t.TempDir() + "/none")
	if _, err := m.end(); err == nil {
		t.Error("a log that is not there is no error")
	}
	out := m.result()
	if out.Count() != 8 {
		t.Errorf("%d writes, want all but the load's and a bystander's: %+v", out.Count(), out.All)
	}
	if out.Refused != 1 || len(out.Again) != 1 || out.Again["update volumeholds"] != 1 {
		t.Errorf("refused %d, again %v: want one of each", out.Refused, out.Again)
	}
	for _, w := range out.All {
		if w.User == "node:*" && w.Resource == "nodes/status" {
			return
		}
	}
	t.Errorf("the node's write is nobody's: %+v", out.All)
}

func TestWhatIsForeignCountsWhereItIsMeasured(t *testing.T) {
	m := newMeter(nil, controllerUser, func(*audit.Object) bool { return true })
	m.countAll(true)
	m.see(write(controllerUser, "create", "volumeattachments", "csi-1", 201, 5))
	if m.created.IsZero() {
		t.Error("the volume that waits for the controller's start does not count")
	}
}
