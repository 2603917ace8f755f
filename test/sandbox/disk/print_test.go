// SPDX-License-Identifier: Apache-2.0

package disk_test

import (
	"strings"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/test/sandbox/disk"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func TestPrintLog(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)
	attach := func(seq, id uint64, phase diskapi.Phase) disk.Entry {
		return disk.Entry{Seq: seq, ID: id, Time: at, Phase: phase, Call: diskapi.ControllerPublish, Volume: "vol-1", Node: "i-a"}
	}
	end := attach(3, 1, diskapi.Returned)
	end.Outcome, end.Code, end.DurationMs, end.FaultID, end.Detail = diskapi.Failed, "Internal", 12.34, "fault-9", "boom"
	var out strings.Builder
	err := disk.PrintLog(&out, []disk.Entry{
		attach(1, 1, diskapi.Arrived), attach(2, 1, diskapi.Applied), end, attach(4, 4, diskapi.Arrived),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `SEQ  TIME          CALL                     VOLUME  NODE  OUTCOME  CODE      MS    DETAIL
3    03:04:05.006  ControllerPublishVolume  vol-1   i-a   failed   Internal  12.3  boom [fault-9]
4    03:04:05.006  ControllerPublishVolume  vol-1   i-a   arrived  -         -     
`
	if out.String() != want {
		t.Errorf("printed\n%s", out.String())
	}
}

func TestPrintViolations(t *testing.T) {
	var none, one strings.Builder
	if err := disk.PrintViolations(&none, nil); err != nil {
		t.Fatal(err)
	}
	if none.String() != "The disk service saw no violation.\n" {
		t.Errorf("printed %q", none.String())
	}
	err := disk.PrintViolations(&one, []disk.Violation{{
		Seq: 7, Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Rule: diskapi.TwoNodes, Attempt: diskapi.AttemptRefused, Message: "volume v",
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := `SEQ  TIME          RULE       ATTEMPT  MESSAGE
7    03:04:05.000  two-nodes  refused  volume v
`
	if one.String() != want {
		t.Errorf("printed\n%s", one.String())
	}
}
