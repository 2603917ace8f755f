// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/moorage-dev/moorage/test/sandbox"
)

const nobody = 65534

// unprivileged guards that nothing in the sandbox needs root: no mounts, no
// cgroups, no low ports.
func unprivileged() sandbox.Scenario {
	return sandbox.Scenario{
		Name:  "unprivileged",
		Doc:   "The whole sandbox, Moorage included, runs under an unprivileged uid: scenario path passes there.",
		Modes: []sandbox.Mode{sandbox.Standalone},
		Bare:  true,
		Run:   runUnprivileged,
	}
}

func runUnprivileged(ctx context.Context, e *sandbox.Env) error {
	home, err := os.MkdirTemp("", "moorage-nobody-")
	if err != nil {
		return fmt.Errorf("folder for nobody: %w", err)
	}
	defer os.RemoveAll(home)
	binary, releases, err := lend(e, home)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, binary, append([]string{"run", "path", "--mode", string(e.Mode), "--dir", home}, releases...)...)
	cmd.Dir = home
	cmd.Env = []string{"HOME=" + home, "TMPDIR=" + home, "PATH=" + os.Getenv("PATH")}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, io.MultiWriter(&out, e.Output)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if os.Getuid() == 0 {
		if err := chown(home, nobody); err != nil {
			return err
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	e.Log("running scenario path as uid %d", cmp.Or(os.Getuid(), nobody))
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("scenario path fails without privileges: %w\n%s", err, out.String())
	}
	if !strings.Contains(out.String(), "1 passed, 0 failed") {
		return fmt.Errorf("scenario path did not run: %s", out.String())
	}
	return nil
}

func executableOf(e *sandbox.Env) (string, error) {
	if e.Options.Executable != "" {
		return e.Options.Executable, nil
	}
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the sandbox's executable: %w", err)
	}
	return path, nil
}

// Everyone can read the copies; the originals may lie in a home.
func lend(e *sandbox.Env, home string) (binary string, releases []string, err error) {
	executable, err := executableOf(e)
	if err != nil {
		return "", nil, err
	}
	attacher, err := e.Options.AttacherPath()
	if err != nil {
		return "", nil, err
	}
	binary = filepath.Join(home, "moorage-sandbox")
	err = errors.Join(copyFile(executable, binary), copyFile(attacher, filepath.Join(home, "csi-attacher")))
	for _, release := range []struct{ flag, path string }{{"control-plane", e.Options.ControlPlane}, {"kubelets", e.Options.Kubelets}} {
		if release.path == "" {
			continue
		}
		to := filepath.Join(home, release.flag)
		err = errors.Join(err, copyFile(release.path, to))
		releases = append(releases, "--"+release.flag, to)
	}
	return binary, releases, err
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("lend a binary: %w", err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return fmt.Errorf("lend a binary: %w", err)
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("lend a binary: %w", err)
	}
	return nil
}

func chown(dir string, uid int) error {
	return filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chown(path, uid, uid)
	})
}
