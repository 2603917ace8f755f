// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	e2eimage "k8s.io/kubernetes/test/utils/image"

	"github.com/moorage-dev/moorage/test/sandbox/real/image"
)

type recipe struct {
	image             image.Image
	packages, without []string
	finish            func(ctx context.Context, folder string) error
}

func recipes() map[string]recipe {
	return map[string]recipe{
		"busybox": {
			image: image.Image{
				Names: []string{
					"docker.io/library/busybox:latest", "docker.io/library/busybox:1.35", "moorage.dev/sandbox/pause:1", "registry.invalid/main:1",
					e2eimage.GetE2EImage(e2eimage.Pause),
					e2eimage.GetE2EImage(e2eimage.Nginx), // the storage suites only wait for it to run
				},
				Command: []string{"sleep", "infinity"},
			},
			packages: []string{"busybox-static"},
			finish:   applets,
		},
		"debian": {
			image: image.Image{
				// Without DNS tools. The tests' busybox has a newer dd than Debian's, as GNU's is. The shell is bash,
				// since Debian's busybox calls its own dd.
				Names:   []string{e2eimage.GetE2EImage(e2eimage.GlibcDnsTesting), e2eimage.GetE2EImage(e2eimage.BusyBox)},
				Command: []string{"sleep", "infinity"},
			},
			packages: []string{"coreutils", "bash", "busybox-static"},
			finish: func(ctx context.Context, folder string) error {
				return errors.Join(os.Symlink("bash", filepath.Join(folder, "bin", "sh")), applets(ctx, folder))
			},
		},
		"agnhost": {
			image: image.Image{
				Names:      []string{e2eimage.GetE2EImage(e2eimage.Agnhost)},
				Entrypoint: []string{"/agnhost"},
				Command:    []string{"pause"},
			},
			packages: []string{"busybox-static"},
			finish:   agnhost,
		},
		"postgresql": {
			image: image.Image{
				Names:   []string{"moorage.dev/sandbox/postgresql:15"},
				Command: []string{"sh", "/start"},
				Env:     []string{"PGDATA=/v0/data", "PGHOST=/tmp", "PGUSER=postgres"},
			},
			packages: []string{"postgresql-15", "postgresql-client-15", "zlib1g", "tzdata", "busybox-static"},
			without:  []string{"libllvm14", "libz3-4"}, // for its compiler, which it does without
			finish:   postgresql,
		},
		"etcd": {
			image: image.Image{
				Names:   []string{"moorage.dev/sandbox/etcd:3.4"},
				Command: []string{"etcd", "--data-dir=/v0/data"},
			},
			packages: []string{"etcd-server", "etcd-client", "busybox-static"},
			finish:   applets,
		},
		"redis": {
			image: image.Image{
				Names:   []string{"moorage.dev/sandbox/redis:7.0"},
				Command: []string{"redis-server", "--dir", "/v0", "--appendonly", "yes", "--appendfsync", "always"},
			},
			packages: []string{"redis-server", "redis-tools", "busybox-static"},
			finish:   applets,
		},
	}
}

func makeImage(ctx context.Context, path string, r recipe) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	work, err := os.MkdirTemp("", "moorage-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	r.image.Folder = filepath.Join(work, "root")
	if err := os.Mkdir(r.image.Folder, 0o755); err != nil {
		return err
	}
	if err := unpack(ctx, work, r); err != nil {
		return err
	}
	if err := users(r.image.Folder); err != nil {
		return err
	}
	if r.finish != nil {
		if err := r.finish(ctx, r.image.Folder); err != nil {
			return err
		}
	}
	return r.image.Write(path)
}

// unpack does not run the packages' scripts.
func unpack(ctx context.Context, work string, r recipe) error {
	needed, err := libraries(ctx, r.packages, r.without)
	if err != nil {
		return err
	}
	packages := append(needed, r.packages...)
	if _, err := command(ctx, work, "apt-get", append([]string{"download", "-q", "-o", "APT::Sandbox::User=root"}, packages...)...); err != nil {
		return fmt.Errorf("download of Debian's packages: %w", err)
	}
	archives, err := filepath.Glob(filepath.Join(work, "*.deb"))
	if err != nil {
		return err
	}
	for _, archive := range archives {
		if _, err := command(ctx, work, "dpkg-deb", "-x", archive, r.image.Folder); err != nil {
			return err
		}
	}
	return nil
}

// libraries lists the shared libraries that packages need. Only the packages' scripts need the rest.
func libraries(ctx context.Context, packages, without []string) ([]string, error) {
	out, err := command(ctx, "", "apt-get", append([]string{
		"install", "--simulate", "--no-install-recommends", "-o", "Dir::State::status=/dev/null",
	}, packages...)...)
	if err != nil {
		return nil, err
	}
	var list []string
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "Inst" {
			continue
		}
		name := fields[1]
		if strings.HasPrefix(name, "lib") && !strings.Contains(name, "perl") && !slices.Contains(without, name) {
			list = append(list, name)
		}
	}
	return list, nil
}

func users(folder string) error {
	var errs []error
	for _, dir := range []string{"bin", "etc", "tmp", "proc", "sys", "dev", "run", "root", "var/tmp"} {
		errs = append(errs, os.MkdirAll(filepath.Join(folder, dir), 0o755))
	}
	for _, dir := range []string{"tmp", "var/tmp"} {
		errs = append(errs, os.Chmod(filepath.Join(folder, dir), 0o777|os.ModeSticky))
	}
	for name, content := range map[string]string{
		"passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
		"group":  "root:x:0:\nnogroup:x:65534:\n",
	} {
		errs = append(errs, os.WriteFile(filepath.Join(folder, "etc", name), []byte(content), 0o644))
	}
	return errors.Join(errs...)
}

func applets(ctx context.Context, folder string) error {
	busybox := filepath.Join(folder, "bin", "busybox")
	list, err := command(ctx, "", busybox, "--list")
	if err != nil {
		return err
	}
	for name := range strings.Lines(list) {
		if name = strings.TrimSpace(name); name == "busybox" {
			continue
		}
		if err := os.Symlink("busybox", filepath.Join(folder, "bin", name)); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return nil
}

func agnhost(ctx context.Context, folder string) error {
	if err := applets(ctx, folder); err != nil {
		return err
	}
	// Linked without shared libraries, and otherwise like the sandbox: little is compiled anew.
	build := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w -linkmode external -extldflags -static",
		"-o", filepath.Join(folder, "agnhost"), "k8s.io/kubernetes/test/images/agnhost")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build of agnhost: %w: %s", err, out)
	}
	return nil
}

const startPostgreSQL = `set -e
mkdir -p "$PGDATA"
chown -R postgres "$PGDATA"
chmod 700 "$PGDATA"
test -s "$PGDATA/PG_VERSION" || su -s /bin/sh postgres -c "initdb --data-checksums --no-locale --encoding=UTF8 --auth=trust"
exec su -s /bin/sh postgres -c "exec postgres -k /tmp"
`

func postgresql(ctx context.Context, folder string) error {
	if err := applets(ctx, folder); err != nil {
		return err
	}
	programs, err := filepath.Glob(filepath.Join(folder, "usr/lib/postgresql/*/bin/*"))
	if err != nil {
		return err
	}
	errs := []error{
		os.WriteFile(filepath.Join(folder, "start"), []byte(startPostgreSQL), 0o755),
		appendTo(filepath.Join(folder, "etc/passwd"), "postgres:x:999:999::/tmp:/bin/sh\n"),
		appendTo(filepath.Join(folder, "etc/group"), "postgres:x:999:\n"),
		os.MkdirAll(filepath.Join(folder, "usr/local/bin"), 0o755),
	}
	for _, program := range programs {
		to, err := filepath.Rel(folder, program)
		errs = append(errs, err, os.Symlink("/"+to, filepath.Join(folder, "usr/local/bin", filepath.Base(program))))
	}
	return errors.Join(errs...)
}

func appendTo(path, line string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	return errors.Join(err, f.Close())
}

func command(ctx context.Context, dir, name string, args ...string) (string, error) {
	var said strings.Builder
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stderr = dir, &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(said.String()))
	}
	return string(out), nil
}
