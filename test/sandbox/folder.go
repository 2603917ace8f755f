// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// sun_path has 108 bytes on Linux, and the last is zero.
const maxSocketPath = 107

// folder is locked while the cluster's process lives. With a free lock it can be removed.
type folder struct {
	path string
	lock *os.File
}

func openFolder(base, name string) (*folder, error) {
	if err := os.MkdirAll(base, 0o755); err != nil {
		return nil, fmt.Errorf("folder for clusters: %w", err)
	}
	removeStale(base)
	if name != "" {
		f, err := takeFolder(base, name)
		if errors.Is(err, errInUse) {
			return nil, fmt.Errorf("cluster %s runs already (folder %s): stop it, or choose another --name", name, filepath.Join(base, name))
		}
		return f, err
	}
	for i := 1; ; i++ {
		name = "sandbox"
		if i > 1 {
			name = fmt.Sprintf("sandbox-%d", i)
		}
		if kept(filepath.Join(base, name)) {
			continue
		}
		if f, err := takeFolder(base, name); !errors.Is(err, errInUse) {
			return f, err
		}
	}
}

var errInUse = errors.New("folder is in use")

// The lock file lies beside the folder: removing the folder never frees a held lock.
func takeFolder(base, name string) (*folder, error) {
	lock, err := lockFile(filepath.Join(base, name+".lock"))
	if err != nil {
		return nil, err
	}
	path := filepath.Join(base, name)
	if longest := longestSocket(path); len(longest) > maxSocketPath {
		lock.Close()
		return nil, fmt.Errorf("folder %s is too long for unix sockets (%d characters in %s, %d are allowed): choose a shorter --dir",
			path, len(longest), longest, maxSocketPath)
	}
	if err := errors.Join(cleanReal(path), os.RemoveAll(path), os.Mkdir(path, 0o755)); err != nil {
		lock.Close()
		return nil, fmt.Errorf("folder of the cluster: %w", err)
	}
	return &folder{path: path, lock: lock}, nil
}

func longestSocket(path string) string {
	return filepath.Join(path, "nodes", "worker-100", "plugins_registry", DriverName+"-reg.sock")
}

// The kernel frees the lock when this process ends. Children don't inherit it. The end of a lock removes
// its file, so a lock on a file opened before that is void.
func lockFile(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return nil, fmt.Errorf("lock of the cluster: %w", err)
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			f.Close()
			if errors.Is(err, syscall.EWOULDBLOCK) {
				return nil, errInUse
			}
			return nil, fmt.Errorf("lock of the cluster: %w", err)
		}
		if leadsTo(path, f) {
			return f, nil
		}
		f.Close()
	}
}

const lookAgain = 50 * time.Millisecond

func awaitFree(ctx context.Context, path string) error {
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for {
		f, err := os.Open(path)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		} else if err != nil {
			return fmt.Errorf("lock of the cluster: %w", err)
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
		f.Close()
		if err == nil {
			return nil
		} else if !errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("lock of the cluster: %w", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the cluster has not ended yet: %w", ctx.Err())
		case <-again.C:
		}
	}
}

func leadsTo(path string, f *os.File) bool {
	named, err := os.Stat(path)
	if err != nil {
		return false
	}
	open, err := f.Stat()
	return err == nil && os.SameFile(named, open)
}

func removeStale(base string) {
	locks, _ := filepath.Glob(filepath.Join(base, "*.lock"))
	for _, path := range locks {
		lock, err := lockFile(path)
		if err != nil {
			continue
		}
		dir := path[:len(path)-len(".lock")]
		if cleanReal(dir) == nil && !kept(dir) { // otherwise the next one tries again
			_ = os.RemoveAll(dir)
			_ = os.Remove(path)
		}
		lock.Close()
	}
}

const (
	keptMarker = "kept"
	// A cluster of the same name ends this earlier.
	keptFor = 24 * time.Hour
)

func kept(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, keptMarker))
	return err == nil && time.Since(info.ModTime()) < keptFor
}

func (f *folder) release(keep bool) error {
	defer f.lock.Close()
	if keep {
		return os.WriteFile(filepath.Join(f.path, keptMarker), nil, 0o644)
	}
	return errors.Join(os.RemoveAll(f.path), os.Remove(f.lock.Name()))
}

func (f *folder) mkdir(name string) (string, error) {
	path := filepath.Join(f.path, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		return "", fmt.Errorf("folder of the cluster: %w", err)
	}
	return path, nil
}

func (f *folder) file(name string) string { return filepath.Join(f.path, name) }

func (f *folder) name() string { return filepath.Base(f.path) }
