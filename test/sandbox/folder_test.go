// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func open(t *testing.T, base, name string) *folder {
	t.Helper()
	f, err := openFolder(base, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.lock.Close() })
	return f
}

// A test's own temporary folder may be too deep for unix sockets.
func base(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestFoldersOfTwoClustersAreApart(t *testing.T) {
	dir := base(t)
	a, b := open(t, dir, ""), open(t, dir, "")
	if a.name() != "sandbox" || b.name() != "sandbox-2" {
		t.Fatalf("names %s and %s", a.name(), b.name())
	}
	if _, err := openFolder(dir, "sandbox"); err == nil || !strings.Contains(err.Error(), "runs already") {
		t.Fatalf("taking the folder of a running cluster: %v", err)
	}
}

func TestReleaseRemovesTheFolder(t *testing.T) {
	dir := base(t)
	f := open(t, dir, "mine")
	if err := f.release(false); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Fatalf("left over: %v, %v", left, err)
	}
}

func TestFolderOfAKilledClusterGoesWhenTheNextStarts(t *testing.T) {
	dir := base(t)
	killed := open(t, dir, "killed")
	if err := os.WriteFile(killed.file("log"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	killed.lock.Close() // as the kernel does when the process ends
	open(t, dir, "next")
	if _, err := os.Stat(killed.path); !os.IsNotExist(err) {
		t.Fatalf("the folder is still there: %v", err)
	}
}

func TestKeptFolderStaysForADay(t *testing.T) {
	dir := base(t)
	f := open(t, dir, "")
	if err := f.release(true); err != nil {
		t.Fatal(err)
	}
	if next := open(t, dir, ""); next.name() != "sandbox-2" {
		t.Fatalf("the next cluster takes the kept folder %s", next.name())
	}
	old := time.Now().Add(-keptFor - time.Minute)
	if err := os.Chtimes(filepath.Join(f.path, keptMarker), old, old); err != nil {
		t.Fatal(err)
	}
	removeStale(dir)
	if _, err := os.Stat(f.path); !os.IsNotExist(err) {
		t.Fatalf("the folder is still there after a day: %v", err)
	}
}

func TestFolderTooLongForSockets(t *testing.T) {
	dir := filepath.Join(base(t), strings.Repeat("x", 100))
	if _, err := openFolder(dir, "mine"); err == nil || !strings.Contains(err.Error(), "shorter --dir") {
		t.Fatalf("got %v", err)
	}
}

// The race: a lock file is removed between another's open and lock.
func TestClustersThatStartAndStopTogetherShareNoFolder(t *testing.T) {
	dir := base(t)
	var mu sync.Mutex
	taken := map[string]bool{}
	var running sync.WaitGroup
	for range 8 {
		running.Go(func() {
			for range 200 {
				f, err := openFolder(dir, "")
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if taken[f.path] {
					t.Errorf("%s is taken twice", f.name())
				}
				taken[f.path] = true
				mu.Unlock()
				mu.Lock()
				delete(taken, f.path)
				mu.Unlock()
				if err := f.release(false); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
}

func TestStopWaitsForTheFolder(t *testing.T) {
	for _, keep := range []bool{false, true} {
		dir := base(t)
		f := open(t, dir, "mine")
		listener, err := net.Listen("unix", f.file(controlSocket))
		if err != nil {
			t.Fatal(err)
		}
		asked := make(chan struct{})
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusAccepted)
			asked <- struct{}{}
		}), ReadHeaderTimeout: time.Minute}
		go func() { _ = server.Serve(listener) }() // ends with Close
		t.Cleanup(func() { server.Close() })
		impatient, cancel := context.WithCancel(t.Context())
		stopped := make(chan error, 1)
		go func() { stopped <- connectTo(f.path).Stop(impatient) }()
		<-asked
		cancel()
		if err := <-stopped; err == nil {
			t.Fatal("a cluster that runs counts as stopped")
		}
		go func() { stopped <- connectTo(f.path).Stop(t.Context()) }()
		<-asked
		if err := f.release(keep); err != nil {
			t.Fatal(err)
		}
		if err := <-stopped; err != nil {
			t.Fatal(err)
		}
		open(t, dir, "mine")
	}
}
