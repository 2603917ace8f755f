// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/test/bench/attach/result"
	"github.com/moorage-dev/moorage/test/sandbox/audit"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func newHalf() half {
	return half{verb: "create", settled: "patch volumeattachments/status", call: diskapi.ControllerPublish}
}

func at(seconds float64) time.Time {
	return time.Unix(100, 0).Add(time.Duration(seconds * float64(time.Second)))
}

func request(verb, resource, sub, user string, from, to float64) audit.Event {
	return audit.Event{
		Stage: "ResponseComplete", Verb: verb, User: audit.User{Username: user}, Received: at(from), Finished: at(to),
		Object: &audit.Object{Resource: resource, Subresource: sub},
	}
}

func TestRequests(t *testing.T) {
	out := &result.Half{Writes: map[string]int{}}
	m := newHalf().requests([]audit.Event{
		request("create", "volumeattachments", "", "admin", 0, 0.2), // before the window
		request("create", "volumeattachments", "", "admin", 2, 3),
		request("create", "volumeattachments", "", "admin", 1, 1.5),
		request("patch", "volumeattachments", "status", attacherUser, 3, 5),
		request("patch", "volumeattachments", "status", attacherUser, 3, 4),
		request("patch", "volumeattachments", "status", "another", 3, 9),
		request("get", "volumeattachments", "", attacherUser, 3, 9),
		request("update", "leases", "", attacherUser, 3, 9),
		request("patch", "volumeattachments", "status", attacherUser, 8, 9), // after it
	}, at(0.5), at(7), out)
	if m.began != at(1) || m.asked != at(3) || m.settled != at(5) {
		t.Errorf("the moments are %+v", m)
	}
	if len(out.Writes) != 1 || out.Writes["patch volumeattachments/status"] != 2 {
		t.Errorf("the writes are %v", out.Writes)
	}
}

func TestCalls(t *testing.T) {
	entry := func(call diskapi.Call, phase diskapi.Phase, volume string, seconds float64) diskapi.Entry {
		e := diskapi.Entry{Call: call, Phase: phase, Volume: volume, Time: at(seconds)}
		if phase == diskapi.Returned {
			e.Outcome = diskapi.OK
		}
		return e
	}
	out := &result.Half{Calls: map[string]int{}}
	newHalf().calls([]diskapi.Entry{
		entry(diskapi.CreateVolume, diskapi.Arrived, "a", 0.5),
		entry(diskapi.ControllerPublish, diskapi.Arrived, "a", 2),
		entry(diskapi.ControllerPublish, diskapi.Arrived, "b", 3),
		entry(diskapi.ControllerPublish, diskapi.Returned, "b", 4),
		entry(diskapi.ControllerPublish, diskapi.Returned, "a", 5),
		entry(diskapi.ControllerPublish, diskapi.Arrived, "a", 6), // once more
		entry(diskapi.ControllerUnpublish, diskapi.Returned, "b", 9),
	}, at(1), out)
	if out.BegunSeconds != 2 || out.CalledSeconds != 4 {
		t.Errorf("the last volume's first call came after %v s, and the last was answered after %v s", out.BegunSeconds, out.CalledSeconds)
	}
	if len(out.Calls) != 1 || out.Calls["ControllerPublishVolume"] != 3 {
		t.Errorf("the calls are %v", out.Calls)
	}
}
