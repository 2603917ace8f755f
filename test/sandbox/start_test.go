// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/test/sandbox/internal/supervise"
)

func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "moorage-sandbox")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestComponentThatDiesEndsTheStartAndItsLogIsKept(t *testing.T) {
	o := Options{Shape: DefaultShape(), Executable: script(t, "echo the database is broken; exit 7"), Attacher: "/bin/true", BaseDir: base(t)}
	_, err := Start(t.Context(), o)
	var exit *supervise.ExitError
	if !errors.As(err, &exit) || exit.Reason != "exit status 7" {
		t.Fatalf("got %v", err)
	}
	if !strings.Contains(err.Error(), "the database is broken") {
		t.Errorf("the error does not quote the log: %v", err)
	}
	if _, err := os.Stat(exit.Log); err != nil {
		t.Errorf("the log it names is gone: %v", err)
	}
}

func TestStartThatIsInterruptedLeavesNoProcess(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	pids := t.TempDir()
	o := Options{
		Shape: DefaultShape(), Attacher: "/bin/true", BaseDir: base(t),
		Executable: script(t, "touch "+pids+"/$$; exec sleep 600"),
		Progress:   func(string) { cancel() },
	}
	if _, err := Start(ctx, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(o.BaseDir, "sandbox")); !os.IsNotExist(err) {
		t.Errorf("the folder of an interrupted start is kept: %v", err)
	}
	started, err := os.ReadDir(pids)
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range started {
		if _, err := os.Stat(filepath.Join("/proc", pid.Name())); err == nil {
			t.Errorf("process %s is still there", pid.Name())
		}
	}
}
