// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/moorage-dev/moorage/test/sandbox"
)

// isolation guards that clusters don't see each other, and that a killed parent leaves nothing behind.
func isolation() sandbox.Scenario {
	return sandbox.Scenario{
		Name:  "isolation",
		Doc:   "Two clusters run side by side; the parent of one gets SIGKILL: none of its processes survives, the other cluster doesn't notice, and its folder goes when the next one starts.",
		Modes: []sandbox.Mode{sandbox.Upstream},
		Bare:  true,
		Run:   runIsolation,
	}
}

func runIsolation(ctx context.Context, e *sandbox.Env) (err error) {
	base, err := os.MkdirTemp("", "moorage-isolation-")
	if err != nil {
		return fmt.Errorf("folder for two clusters: %w", err)
	}
	defer os.RemoveAll(base)
	options := e.Options
	options.BaseDir, options.Name, options.Nodes = base, "ours", 1
	ours, err := sandbox.Start(ctx, options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ours.Stop()) }()

	parent, theirs, err := startOther(ctx, e, base)
	if err != nil {
		return err
	}
	e.Log("cluster %s runs beside %s; killing the parent of its %d processes", theirs.Name, ours.Info().Name, len(theirs.Processes))
	if err := parent.Process.Kill(); err != nil {
		return fmt.Errorf("kill the other cluster's parent: %w", err)
	}
	_ = parent.Wait() // says that it was killed
	if err := awaitGone(ctx, theirs); err != nil {
		return err
	}
	if _, err := ours.Client().CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err != nil {
		return fmt.Errorf("the cluster that was left alone does not answer: %w", err)
	}
	if err := ours.Failure(); err != nil {
		return err
	}
	return expectStaleFolderRemoved(ctx, options, theirs.Dir)
}

func startOther(ctx context.Context, e *sandbox.Env, base string) (*exec.Cmd, sandbox.Info, error) {
	executable, err := executableOf(e)
	if err != nil {
		return nil, sandbox.Info{}, err
	}
	cmd := exec.Command(executable, "up", "--dir", base, "--name", "theirs", "--nodes", "1", "--mode", string(e.Mode))
	cmd.Stderr = e.Output
	if err := cmd.Start(); err != nil {
		return nil, sandbox.Info{}, fmt.Errorf("start another cluster: %w", err)
	}
	var info sandbox.Info
	err = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		remote, err := sandbox.Find(ctx, base, "theirs")
		if err != nil {
			return false, nil
		}
		info, err = remote.Info(ctx)
		return err == nil, nil
	})
	if err != nil {
		_ = cmd.Process.Kill()
		return nil, info, fmt.Errorf("wait for the other cluster: %w", err)
	}
	return cmd, info, nil
}

func awaitGone(ctx context.Context, info sandbox.Info) error {
	var alive []string
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		alive = nil
		for _, p := range info.Processes {
			if exists(p.PID) {
				alive = append(alive, p.Name+" (pid "+strconv.Itoa(p.PID)+")")
			}
		}
		return len(alive) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("processes survive their parent: %s", strings.Join(alive, ", "))
	}
	return nil
}

func exists(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return !errors.Is(err, os.ErrNotExist) && syscall.Kill(pid, 0) == nil
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}

func expectStaleFolderRemoved(ctx context.Context, options sandbox.Options, dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return fmt.Errorf("the killed cluster's folder should be there until somebody clears up: %w", err)
	}
	options.Name = "next"
	next, err := sandbox.Start(ctx, options)
	if err != nil {
		return err
	}
	_, statErr := os.Stat(dir)
	if err := next.Stop(); err != nil {
		return err
	}
	if !errors.Is(statErr, os.ErrNotExist) {
		return fmt.Errorf("folder %s of a killed cluster survives the next start", dir)
	}
	return nil
}
