// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/connect"
	"github.com/moorage-dev/moorage/internal/nodemounts"
	"github.com/moorage-dev/moorage/test/apitest"
)

type machine struct {
	t      *testing.T
	config Config
	mounts []string
}

func newMachine(t *testing.T) *machine {
	m := &machine{t: t, config: DefaultConfig()}
	m.config.KubeletRoot = filepath.Join(t.TempDir(), "kubelet")
	m.config.Mounts = filepath.Join(t.TempDir(), "mountinfo")
	m.config.Sys = t.TempDir()
	m.write("pods/uid-a/volumes/x", "")
	m.table()
	return m
}

func (m *machine) write(name, text string) {
	m.t.Helper()
	name = filepath.Join(m.config.KubeletRoot, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) table() {
	m.t.Helper()
	text := fmt.Sprintf("1 0 8:1 / %s rw master:1 - ext4 /dev/sda rw\n", m.config.KubeletRoot)
	for i, point := range m.mounts {
		text += fmt.Sprintf("%d 1 8:%d / %s rw master:1 - ext4 /dev/sdb rw\n", i+2, i+2, filepath.Join(m.config.KubeletRoot, point))
	}
	if err := os.WriteFile(m.config.Mounts, []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) stage(handle string) {
	m.t.Helper()
	folder := "plugins/kubernetes.io/csi/pv/" + handle
	m.write(folder+"/vol_data.json", fmt.Sprintf(`{"driverName":"disk.example.com","volumeHandle":%q}`, handle))
	m.mounts = append(m.mounts, folder+"/globalmount")
	m.table()
}

func (m *machine) agent(server *apitest.Server) *agent {
	m.t.Helper()
	config, err := connect.Rest(apitest.Kubeconfig(m.t, server.URL), "moorage-node")
	if err != nil {
		m.t.Fatal(err)
	}
	clients, err := client.NewForConfig(config)
	if err != nil {
		m.t.Fatal(err)
	}
	return newAgent(m.config, clients.NodeMountReports(), "n1", "uid-n1", func(before []nodemounts.Alive) sight { return look(m.config, "", before) })
}

func get(t *testing.T, server *apitest.Server) v1alpha1.NodeMountReport {
	t.Helper()
	var object v1alpha1.NodeMountReport
	if !server.Get("nodemountreports", "", "n1", &object) {
		t.Fatal("there is no NodeMountReport n1")
	}
	return object
}

func rounds(t *testing.T, a *agent, n int) {
	t.Helper()
	for range n {
		if err := a.round(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNoWriteAtRest(t *testing.T) {
	server, m := apitest.Start(t), newMachine(t)
	m.stage("vol-1")
	rounds(t, m.agent(server), 100)
	if got, want := server.Writes(), []string{"create nodemountreports n1", "update nodemountreports/status n1"}; !slices.Equal(got, want) {
		t.Errorf("written: %q, want %q", got, want)
	}
	first := get(t, server)
	if len(first.Status.Volumes) != 1 || !first.Status.Volumes[0].Forgotten || first.Status.Volumes[0].Handle != "vol-1" || first.Status.Observed == nil ||
		first.Status.NodeUID != "uid-n1" || *first.Status.Summary != (v1alpha1.NodeMountReportSummary{Volumes: 1, Forgotten: 1}) {
		t.Errorf("status %+v", first.Status)
	}
	if owners := first.OwnerReferences; len(owners) != 1 || owners[0].Kind != "Node" || owners[0].Name != "n1" || owners[0].UID != "uid-n1" {
		t.Errorf("owners %+v", owners)
	}
	server.Forget()
	again := m.agent(server)
	rounds(t, again, 100)
	if got := server.Writes(); len(got) > 0 {
		t.Errorf("a process that starts again writes %q", got)
	}
	m.stage("vol-2")
	rounds(t, again, 100)
	if got, want := server.Writes(), []string{"update nodemountreports/status n1"}; !slices.Equal(got, want) {
		t.Errorf("after one change: %q, want %q", got, want)
	}
	if got := get(t, server).Status; len(got.Volumes) != 2 {
		t.Errorf("status %+v", got)
	}
}

// File systems of the last process come from the status, but not from another boot.
func TestRemembersFileSystems(t *testing.T) {
	server, m := apitest.Start(t), newMachine(t)
	m.config.BootID = filepath.Join(m.config.Sys, "boot")
	boots := func(id string) {
		if err := os.WriteFile(m.config.BootID, []byte(id), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	boots("first")
	entry := filepath.Join(m.config.Sys, "fs/ext4/sdb")
	for _, folder := range []string{entry, filepath.Join(m.config.Sys, "dev/block")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../../devices/sdb", filepath.Join(m.config.Sys, "dev/block/8:2")); err != nil {
		t.Fatal(err)
	}
	gone := func() {
		m.mounts = nil
		m.table()
		if err := os.RemoveAll(filepath.Join(m.config.KubeletRoot, "plugins")); err != nil {
			t.Fatal(err)
		}
	}
	m.stage("vol-1")
	rounds(t, m.agent(server), 1)
	gone()
	rounds(t, m.agent(server), 2)
	first := m.agent(server)
	rounds(t, first, 2)
	status := get(t, server).Status
	if len(status.Volumes) != 1 || status.Volumes[0].Handle != "vol-1" || status.Volumes[0].Mounted != v1alpha1.NodeYes || !status.Volumes[0].FileSystems[0].Unmounted || len(status.Unknown) > 0 {
		t.Fatalf("status %+v", status)
	}
	root := m.config.KubeletRoot
	first.look = func(before []nodemounts.Alive) sight {
		c := m.config
		c.KubeletRoot = root + "-not-there"
		return look(c, "", before)
	}
	rounds(t, first, 1)
	first.look = func(before []nodemounts.Alive) sight { return look(m.config, "", before) }
	rounds(t, first, 1)
	if got := get(t, server).Status.Volumes; len(got) != 1 {
		t.Errorf("after a look that saw nothing it has %+v", got)
	}
	if err := os.Remove(entry); err != nil {
		t.Fatal(err)
	}
	rounds(t, first, 1)
	if got := get(t, server).Status.Volumes; len(got) > 0 {
		t.Errorf("when it has ended it has %+v", got)
	}
	if err := os.Mkdir(entry, 0o755); err != nil {
		t.Fatal(err)
	}
	m.stage("vol-2")
	rounds(t, first, 1)
	gone()
	boots("second")
	rounds(t, m.agent(server), 1)
	if got := get(t, server).Status; len(got.Volumes) > 0 || got.BootID != "second" {
		t.Errorf("in another boot it has %+v", got)
	}
}

// Unlisted file systems count as mounted in that boot.
func TestRemembersThatThereWereMoreFileSystems(t *testing.T) {
	server, m := apitest.Start(t), newMachine(t)
	m.config.BootID = filepath.Join(m.config.Sys, "boot")
	if err := os.MkdirAll(m.config.Sys, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(m.config.BootID, []byte("first"), 0o600); err != nil {
		t.Fatal(err)
	}
	rounds(t, m.agent(server), 1)
	object := get(t, server)
	object.Status.Volumes = []v1alpha1.ReportedVolume{{
		Path: nodemounts.StagingPath("d", "vol-1"), Driver: "d", Handle: "vol-1", Mode: "Filesystem",
		Staged: v1alpha1.NodeNo, Mounted: v1alpha1.NodeYes, MoreFileSystems: true,
	}}
	server.Put("nodemountreports", &object)
	for range 2 {
		rounds(t, m.agent(server), 1)
		if list := get(t, server).Status.Volumes; len(list) != 1 || list[0].Handle != "vol-1" || list[0].Mounted != v1alpha1.NodeYes || !list[0].MoreFileSystems {
			t.Fatalf("it has %+v", list)
		}
	}
	if err := os.WriteFile(m.config.BootID, []byte("second"), 0o600); err != nil {
		t.Fatal(err)
	}
	rounds(t, m.agent(server), 1)
	if list := get(t, server).Status.Volumes; len(list) > 0 {
		t.Errorf("in another boot it has %+v", list)
	}
}

func TestConflictAndLook(t *testing.T) {
	server, m := apitest.Start(t), newMachine(t)
	a := m.agent(server)
	rounds(t, a, 1)
	asks := get(t, server)
	asks.Spec.Look = 7
	server.Put("nodemountreports", &asks)
	m.stage("vol-1")
	if err := a.round(t.Context()); !apierrors.IsConflict(err) {
		t.Fatalf("a write on an old version: %v", err)
	}
	rounds(t, a, 1)
	if got := get(t, server); got.Spec.Look != 7 || got.Status.Looked != 7 || len(got.Status.Volumes) != 1 {
		t.Errorf("spec %+v, status %+v", got.Spec, got.Status)
	}
}

func TestDeleted(t *testing.T) {
	server, m := apitest.Start(t), newMachine(t)
	a := m.agent(server)
	rounds(t, a, 1)
	object := get(t, server)
	server.Remove("nodemountreports", "", "n1")
	a.gone(&object)
	rounds(t, a, 1)
	if got := get(t, server); got.Status.Observed == nil {
		t.Errorf("status %+v", got.Status)
	}
}

func TestBlind(t *testing.T) {
	server, m := apitest.Start(t), newMachine(t)
	m.config.KubeletRoot = filepath.Join(t.TempDir(), "none")
	rounds(t, m.agent(server), 2)
	if got := get(t, server).Status; len(got.Unknown) != 1 || got.Summary.Unknown != 1 || !strings.Contains(got.Unknown[0], "nothing can be read") {
		t.Errorf("status %+v", got)
	}
}

// The folder of its own pod is missing there.
func TestWrongRoot(t *testing.T) {
	m := newMachine(t)
	for pod, blind := range map[types.UID]bool{"uid-a": false, "": false, "uid-own": true} {
		status := statusOf(look(m.config, pod, nil), 1, "uid-n1")
		if got := len(status.Unknown) > 0; got != blind {
			t.Errorf("with the pod %q it says that it does not know %q", pod, status.Unknown)
		}
		if blind && !strings.Contains(status.Unknown[0], m.config.KubeletRoot) {
			t.Errorf("it does not name the folder: %q", status.Unknown)
		}
	}
}

// fake has one object, or fails.
type fake struct {
	client.NodeMountReportInterface
	object v1alpha1.NodeMountReport
	fails  bool
	looks  []time.Duration // since the start, of the looks
	tries  []time.Duration // to write
	makes  []time.Duration // of the object's creations
	ends   error           // its last error
	start  time.Time
	sight  sight // what a look finds
}

func (f *fake) Get(context.Context, string, metav1.GetOptions) (*v1alpha1.NodeMountReport, error) {
	return f.object.DeepCopy(), nil
}

func (f *fake) UpdateStatus(_ context.Context, object *v1alpha1.NodeMountReport, _ metav1.UpdateOptions) (*v1alpha1.NodeMountReport, error) {
	f.tries = append(f.tries, time.Since(f.start))
	if f.fails {
		return nil, errors.New("the API server is away")
	}
	f.object = *object.DeepCopy()
	return object, nil
}

type faked interface {
	client.NodeMountReportInterface
	base() *fake
}

func (f *fake) base() *fake { return f }

func running(t *testing.T, own faked, test func(a *agent)) {
	synctest.Test(t, func(t *testing.T) {
		f := own.base()
		f.start = time.Now()
		f.object.Name = "n1"
		a := newAgent(DefaultConfig(), own, "n1", "uid-n1", func([]nodemounts.Alive) sight {
			f.looks = append(f.looks, time.Since(f.start))
			return f.sight
		})
		a.spread = func(most time.Duration) time.Duration { return most / 2 }
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if err := a.run(ctx); !errors.Is(err, f.ends) {
				t.Errorf("it ended with %v, want %v", err, f.ends)
			}
		}()
		synctest.Wait()
		test(a)
		cancel()
		<-ended
	})
}

// Many changes make one look, a question makes a look at once; otherwise every five minutes.
func TestWhenItLooks(t *testing.T) {
	f := &fake{}
	running(t, f, func(a *agent) {
		time.Sleep(time.Minute)
		for range 19 {
			signal(a.changed)
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Minute - 1900*time.Millisecond)
		signal(a.asked)
		time.Sleep(6 * time.Minute)
	})
	if want := []time.Duration{0, 62 * time.Second, 2 * time.Minute, 7 * time.Minute}; !slices.Equal(f.looks, want) {
		t.Errorf("looked at %v, want %v", f.looks, want)
	}
	if len(f.tries) != 1 {
		t.Errorf("wrote at %v", f.tries)
	}
}

// No mount changes at its end: a look every two seconds.
func TestLooksWhileAFileSystemLivesOn(t *testing.T) {
	f := &fake{}
	f.sight.facts.Volumes = []nodemounts.Volume{{Path: "a", FileSystems: []nodemounts.FileSystem{{Entry: "ext4/sdb", Number: 7, Unmounted: true}}}}
	running(t, f, func(*agent) {
		time.Sleep(7 * time.Second)
		f.sight.facts.Volumes = nil
		time.Sleep(time.Minute)
	})
	if want := seconds(0, 2, 4, 6, 8); !slices.Equal(f.looks, want) {
		t.Errorf("looked at %v, want %v", f.looks, want)
	}
	if len(f.tries) != 2 {
		t.Errorf("wrote at %v", f.tries)
	}
}

func TestBacksOff(t *testing.T) {
	f := &fake{fails: true}
	running(t, f, func(a *agent) {
		for range 600 {
			signal(a.changed)
			time.Sleep(time.Second)
		}
	})
	if want := seconds(0, 1, 3, 7, 15, 31, 63, 127, 247, 367, 487); !slices.Equal(f.tries, want) {
		t.Errorf("tried at %v, want %v", f.tries, want)
	}
}

// Questions end a pause at most once in half a minute.
func TestQuestionsWhileWritesFail(t *testing.T) {
	f := &fake{fails: true}
	running(t, f, func(a *agent) {
		time.Sleep(130 * time.Second)
		for range 100 {
			signal(a.asked)
			time.Sleep(time.Second)
		}
	})
	want := seconds(0, 1, 3, 7, 15, 31, 63, 127, 131, 132, 134, 138, 146, 161, 162, 164, 168, 176, 191, 192, 194, 198, 206, 221, 222, 224, 228)
	if !slices.Equal(f.tries, want) {
		t.Errorf("tried at %v, want %v", f.tries, want)
	}
}

// The controller takes the node for silent after 30 s.
func TestAnswersAfterOutage(t *testing.T) {
	for _, failing := range []time.Duration{0, 5 * time.Second} {
		f := &fake{fails: true}
		running(t, f, func(a *agent) {
			time.Sleep(250 * time.Second)
			f.object.Spec.Look = 1
			a.told(f.object.DeepCopy())
			time.Sleep(failing)
			f.fails = false
			time.Sleep(15*time.Second - failing)
			if f.object.Status.Looked != 1 {
				t.Errorf("15 s after the question, with writes that failed for %v more, it has answered %d", failing, f.object.Status.Looked)
			}
		})
	}
}

func seconds(list ...time.Duration) []time.Duration {
	for i := range list {
		list[i] *= time.Second
	}
	return list
}

func TestStatusIsBounded(t *testing.T) {
	var facts nodemounts.Facts
	for i := range 3000 {
		handle := fmt.Sprintf("%04d", i) + strings.Repeat("<", 4092) // JSON makes six times as many bytes of it
		facts.Volumes = append(facts.Volumes, nodemounts.Volume{Driver: "d", Handle: handle, Path: nodemounts.StagingPath("d", handle),
			Mode: nodemounts.Filesystem, Staged: nodemounts.Yes, Mounted: nodemounts.Yes, Forgotten: i == 2999})
	}
	facts.Unlisted = []nodemounts.Brief{{Driver: "another", Digest: "01234567"}}
	status := func() v1alpha1.NodeMountReportStatus {
		status := statusOf(sight{facts: facts}, 1, "u")
		if raw, err := json.Marshal(status); err != nil || len(raw) > 600<<10 {
			t.Errorf("%d bytes, %v", len(raw), err)
		}
		if !status.Truncated || status.Summary.Volumes != 3001 {
			t.Errorf("truncated %t, summary %+v", status.Truncated, status.Summary)
		}
		return status
	}
	got := status()
	told := map[string]bool{}
	for _, v := range got.Volumes {
		told[v.Handle] = true
	}
	if last := facts.Volumes[2999]; got.Summary.Forgotten != 1 || !told[last.Handle] {
		t.Errorf("the forgotten volume is not listed, summary %+v", got.Summary)
	}
	if len(got.Unlisted) != 2 || got.Unlisted[0].Driver != "another" || got.Unlisted[1].Driver != "d" || !slices.IsSorted(got.Unlisted[1].Digests) {
		t.Fatalf("beside those listed there are %+v", got.Unlisted)
	}
	for _, v := range facts.Volumes {
		if digest := fmt.Sprintf("%x", sha256.Sum256([]byte(v.Handle)))[:8]; told[v.Handle] == slices.Contains(got.Unlisted[1].Digests, digest) {
			t.Errorf("volume %.4s is listed: %t, and so it is in few letters", v.Handle, told[v.Handle])
		}
	}
	for i := range facts.Volumes {
		facts.Volumes[i].Handle = fmt.Sprint(i)
	}
	if got := status(); len(got.Volumes) != v1alpha1.MaxReportedVolumes || len(got.Unlisted) != 2 {
		t.Errorf("%d volumes, and %d drivers of others", len(got.Volumes), len(got.Unlisted))
	}
	// Without room for the unnamed volumes, the status names no others.
	for _, unknown := range []int{1, 513} {
		for i := range unknown {
			facts.Volumes[i].Handle, facts.Volumes[i].Path = "", fmt.Sprint("pods/", i)
		}
		if got, want := status(), unknown == 1; len(got.Unlisted) > 0 != want || !slices.ContainsFunc(got.Volumes, func(v v1alpha1.ReportedVolume) bool { return v.Handle == "" }) {
			t.Errorf("with %d of which nobody knows which they are it says %+v", unknown, got.Unlisted)
		}
	}
	facts.Volumes, facts.Unlisted = nil, nil
	for i := range v1alpha1.MaxNodeUnlisted + 1 {
		facts.Unlisted = append(facts.Unlisted, nodemounts.Brief{Driver: "d", Digest: fmt.Sprintf("%08x", i)})
	}
	if got := statusOf(sight{facts: facts}, 1, "u"); !got.Truncated || len(got.Unlisted) > 0 {
		t.Errorf("truncated %t, and %d drivers of others", got.Truncated, len(got.Unlisted))
	}
}

func TestIdentity(t *testing.T) {
	extra := map[string][]string{claimNode: {"n1"}, claimNodeUID: {"uid-n1"}, claimPodUID: {"uid-p"}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis/authentication.k8s.io/v1/selfsubjectreviews" {
			t.Errorf("asked %s", r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1",
			"status": map[string]any{"userInfo": map[string]any{"extra": extra}}})
	}))
	defer server.Close()
	config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	if own, err := identity(t.Context(), DefaultConfig(), config); err != nil || own != (self{node: "n1", uid: "uid-n1", pod: "uid-p"}) {
		t.Errorf("%+v %v", own, err)
	}
	delete(extra, claimNodeUID)
	if _, err := identity(t.Context(), DefaultConfig(), config); err == nil {
		t.Error("a token without a node's UID is taken")
	}
	given := DefaultConfig()
	given.Node, given.NodeUID = "n2", "uid-n2"
	if own, err := identity(t.Context(), given, config); err != nil || own != (self{node: "n2", uid: "uid-n2"}) {
		t.Errorf("%+v %v", own, err)
	}
}

// The test makes no mount: a closed pipe is an event too.
func TestWatchMounts(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "mountinfo")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	changed, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() { ended <- watchMounts(ctx, pipe, changed) }()
	writer, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	<-changed // what changed before it began is looked at
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	<-changed
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	quiet, stop := context.WithCancel(t.Context())
	begun := make(chan struct{}, 1)
	go func() { ended <- watchMounts(quiet, "/proc/self/mountinfo", begun) }()
	<-begun
	if shared := inNetpoller(t, "/mountinfo"); len(shared) > 0 {
		t.Errorf("Go's netpoller waits for the mount table, too (descriptors %v), and takes changes away", shared)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := watchMounts(t.Context(), filepath.Join(t.TempDir(), "none"), changed); err == nil {
		t.Error("a table that is not there is waited for")
	}
}

// inNetpoller lists files with this suffix that an epoll instance of this process waits for.
func inNetpoller(t *testing.T, suffix string) (shared []string) {
	t.Helper()
	descriptors, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var named, waited []string
	for _, d := range descriptors {
		switch target, _ := os.Readlink("/proc/self/fd/" + d.Name()); {
		case strings.HasSuffix(target, suffix):
			named = append(named, d.Name())
		case target == "anon_inode:[eventpoll]":
			text, err := os.ReadFile("/proc/self/fdinfo/" + d.Name())
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "tfd:" {
					waited = append(waited, fields[1])
				}
			}
		}
	}
	if len(named) == 0 {
		t.Fatalf("no file that ends in %s is open", suffix)
	}
	return slices.DeleteFunc(named, func(d string) bool { return !slices.Contains(waited, d) })
}

func TestRun(t *testing.T) {
	server, m := apitest.Start(t), newMachine(t)
	m.stage("vol-1")
	m.config.Kubeconfig, m.config.Listen = apitest.Kubeconfig(t, server.URL), "127.0.0.1:0"
	m.config.Node, m.config.NodeUID, m.config.Mounts = "n1", "uid-n1", "/proc/self/mountinfo"
	written := make(chan v1alpha1.NodeMountReport, 64)
	server.Intercept(func(r apitest.Request, serve func()) error {
		serve()
		if r.Verb == "update" {
			var object v1alpha1.NodeMountReport
			server.Get("nodemountreports", "", "n1", &object)
			written <- object
		}
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, m.config) }()
	object := <-written
	object.Spec.Look = 3
	object.ResourceVersion = ""
	server.Put("nodemountreports", &object)
	for got := range written {
		if got.Status.Looked == 3 {
			break
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestValidate(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Config){
		"a relative folder":     func(c *Config) { c.KubeletRoot = "kubelet" },
		"a node without a UID":  func(c *Config) { c.Node = "n1" },
		"no time to gather":     func(c *Config) { c.Gather = 0 },
		"rescans before gather": func(c *Config) { c.Rescan = time.Millisecond },
	} {
		c := DefaultConfig()
		change(&c)
		if c.Validate() == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
