// SPDX-License-Identifier: Apache-2.0

package disk_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/test/sandbox/disk"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

const asService = "DISK_SERVICE_ARGS"

func TestMain(m *testing.M) {
	if args, ok := os.LookupEnv(asService); ok {
		cmd := disk.NewServiceCommand()
		cmd.SetArgs(strings.Fields(args))
		if err := cmd.Execute(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func (w *world) spawn() *exec.Cmd {
	w.t.Helper()
	w.stop()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), asService+"="+strings.Join(append(w.serviceArgs(), w.args...), " "))
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	w.must(err)
	w.must(child.Start())
	w.t.Cleanup(func() { _ = child.Process.Kill(); _ = child.Wait() })
	w.connect(out)
	return child
}

// After a SIGKILL during an attach the applied state is there, and the attach is in doubt.
func TestKilledServiceRemembers(t *testing.T) {
	w := newWorld(t)
	child := w.spawn()
	a, b := w.node("worker-1", 4), w.node("worker-2", 4)
	vol, before := w.attach("v", a)
	other := w.create("w")
	f := w.fault(disk.Fault{Calls: calls(diskapi.ControllerPublish), Volume: other, Action: diskapi.Hang})
	done := make(chan error, 1)
	go func() { _, err := w.publish(other, a); done <- err }()
	w.await(disk.Filter{FaultID: f.ID, Phase: diskapi.Arrived})
	w.must(child.Process.Kill())
	if err := <-done; err == nil {
		t.Error("an attach that hung was answered by a service that was killed")
	}
	_ = child.Wait()

	w.spawn()
	after, err := w.publish(vol, a)
	w.must(err)
	if before["attachmentID"] != after["attachmentID"] {
		t.Errorf("attachment %v, was %v", after, before)
	}
	if e := w.await(disk.Filter{FaultID: "", Volume: other, Phase: diskapi.Returned, Outcome: diskapi.Lost}); e.Call != diskapi.ControllerPublish {
		t.Errorf("lost call %+v", e)
	}
	w.must(w.api.ClearFaults(w.ctx))
	_, err = w.publish(other, b)
	w.must(err)
	if rules := w.rules(); len(rules) != 1 || rules[0] != diskapi.TwoNodes {
		t.Errorf("rules %v, want the attach in doubt to count", rules)
	}
}
