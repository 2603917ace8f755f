// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const helperEnv = "SUPERVISE_TEST_PARENT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperEnv); dir != "" {
		os.Exit(runParent(dir))
	}
	os.Exit(m.Run())
}

func runParent(dir string) int {
	g := NewGroup()
	for i := range 3 {
		spec := Spec{Name: fmt.Sprintf("child-%d", i), Path: "/bin/sleep", Args: []string{"600"}, LogPath: filepath.Join(dir, "log")}
		if err := g.Launch(spec); err != nil {
			fmt.Println("error:", err)
			return 1
		}
	}
	for _, s := range g.Status() {
		fmt.Println(s.PID)
	}
	fmt.Println("ready")
	select {}
}

func sleeper(t *testing.T, name string) Spec {
	t.Helper()
	return Spec{Name: name, Path: "/bin/sleep", Args: []string{"600"}, LogPath: filepath.Join(t.TempDir(), name+".log")}
}

func newTestGroup(t *testing.T) *Group {
	t.Helper()
	g := NewGroup()
	t.Cleanup(g.Close)
	return g
}

func await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z") && !strings.HasPrefix(after, "X")
}

func TestKilledParentLeavesNoChild(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperEnv+"="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "ready"; {
		pid, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatalf("the parent said %q", lines.Text())
		}
		if !alive(pid) {
			t.Fatalf("child %d does not run", pid)
		}
		pids = append(pids, pid)
	}
	if len(pids) != 3 {
		t.Fatalf("got %d children, want 3", len(pids))
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for _, pid := range pids {
		await(t, fmt.Sprintf("child %d is gone", pid), func() bool { return !alive(pid) })
	}
}

func TestKillAndStartAgain(t *testing.T) {
	g := newTestGroup(t)
	if err := g.Launch(sleeper(t, "a")); err != nil {
		t.Fatal(err)
	}
	first := g.Status()[0]
	if err := g.Kill(context.Background(), "a"); err != nil {
		t.Fatal(err)
	}
	if alive(first.PID) {
		t.Fatalf("process %d survives its kill", first.PID)
	}
	if got := g.Status()[0].State; got != Killed {
		t.Fatalf("state after kill: %s", got)
	}
	if err := g.Start("a"); err != nil {
		t.Fatal(err)
	}
	second := g.Status()[0]
	if second.State != Running || second.Starts != 2 || second.PID == first.PID {
		t.Fatalf("after the second start: %+v", second)
	}
	if err := g.Failure(); err != nil {
		t.Fatalf("a kill on purpose counts as failure: %v", err)
	}
}

func TestTerminateLetsAChildEndAndKillsOneThatDoesNot(t *testing.T) {
	g := newTestGroup(t)
	dir := t.TempDir()
	for name, script := range map[string]string{
		"willing": "trap 'touch ended; exit 0' TERM; touch willing; while :; do sleep 0.01; done",
		"deaf":    "trap '' TERM; touch deaf; while :; do sleep 0.01; done",
	} {
		spec := Spec{Name: name, Path: "/bin/sh", Dir: dir, LogPath: filepath.Join(dir, "log"), Args: []string{"-c", script}}
		if err := g.Launch(spec); err != nil {
			t.Fatal(err)
		}
		await(t, name+" listens for signals", func() bool { _, err := os.Stat(filepath.Join(dir, name)); return err == nil })
	}
	for name, grace := range map[string]time.Duration{"willing": time.Minute, "deaf": 50 * time.Millisecond} {
		if err := g.Terminate(context.Background(), name, grace); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "ended")); err != nil {
		t.Errorf("the willing child was not let end: %v", err)
	}
	for _, s := range g.Status() {
		if s.State != Killed || s.PID != 0 {
			t.Errorf("afterwards: %+v", s)
		}
	}
	if err := g.Failure(); err != nil {
		t.Errorf("an end on purpose counts as failure: %v", err)
	}
}

func TestKillTakesTheProcessGroup(t *testing.T) {
	g := newTestGroup(t)
	dir := t.TempDir()
	spec := Spec{
		Name: "shell", Path: "/bin/sh", Dir: dir, LogPath: filepath.Join(dir, "log"),
		Args: []string{"-c", "sleep 600 & echo $! > pid.tmp; mv pid.tmp pid; wait"},
	}
	if err := g.Launch(spec); err != nil {
		t.Fatal(err)
	}
	var pid int
	await(t, "the grandchild runs", func() bool {
		data, err := os.ReadFile(filepath.Join(dir, "pid"))
		if err != nil {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(data)))
		return err == nil && alive(pid)
	})
	if err := g.Kill(context.Background(), "shell"); err != nil {
		t.Fatal(err)
	}
	await(t, "the grandchild is gone", func() bool { return !alive(pid) })
}

func TestPauseAndResume(t *testing.T) {
	g := newTestGroup(t)
	if err := g.Launch(sleeper(t, "a")); err != nil {
		t.Fatal(err)
	}
	if err := g.Resume("a"); err == nil {
		t.Fatal("resuming a running child is not refused")
	}
	if err := g.Pause("a"); err != nil {
		t.Fatal(err)
	}
	pid := g.Status()[0].PID
	await(t, "the process is stopped", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return false
		}
		_, after, _ := strings.Cut(string(stat), ") ")
		return strings.HasPrefix(after, "T")
	})
	if err := g.Resume("a"); err != nil {
		t.Fatal(err)
	}
	if err := g.Pause("a"); err != nil {
		t.Fatal(err)
	}
	if err := g.Kill(context.Background(), "a"); err != nil {
		t.Fatalf("a paused child can't be killed: %v", err)
	}
}

func TestUnexpectedExitIsReportedWithItsLog(t *testing.T) {
	g := newTestGroup(t)
	spec := Spec{Name: "dies", Path: "/bin/sh", Args: []string{"-c", "exit 3"}, LogPath: filepath.Join(t.TempDir(), "dies.log")}
	if err := g.Launch(spec); err != nil {
		t.Fatal(err)
	}
	<-g.Failed()
	var exit *ExitError
	if err := g.Failure(); !errors.As(err, &exit) {
		t.Fatalf("failure is %v", err)
	}
	if exit.Name != "dies" || exit.Log != spec.LogPath || exit.Reason != "exit status 3" {
		t.Fatalf("failure is %+v", exit)
	}
}

func TestRestartBringsAnExitedChildBack(t *testing.T) {
	g := newTestGroup(t)
	dir := t.TempDir()
	spec := Spec{
		Name: "once", Path: "/bin/sh", Dir: dir, LogPath: filepath.Join(dir, "log"), Restart: true,
		Args: []string{"-c", "test -e seen && exec sleep 600; touch seen; exit 1"},
	}
	if err := g.Launch(spec); err != nil {
		t.Fatal(err)
	}
	await(t, "it was started again", func() bool {
		s := g.Status()[0]
		return s.Starts == 2 && s.State == Running
	})
	if err := g.Failure(); err != nil {
		t.Fatal(err)
	}
}

func TestUnknownAndDuplicateNames(t *testing.T) {
	g := newTestGroup(t)
	if err := g.Kill(context.Background(), "nobody"); !errors.Is(err, ErrUnknown) {
		t.Fatalf("kill of an unknown child: %v", err)
	}
	if err := g.Launch(sleeper(t, "a")); err != nil {
		t.Fatal(err)
	}
	if err := g.Launch(sleeper(t, "a")); err == nil {
		t.Fatal("a second child of the same name is not refused")
	}
	if err := g.Start("a"); err == nil {
		t.Fatal("starting a running child is not refused")
	}
}
