// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/nodemounts"
	"github.com/moorage-dev/moorage/test/bench/node/result"
	"github.com/moorage-dev/moorage/test/sandbox/audit"
)

func TestCount(t *testing.T) {
	now := time.Unix(1000, 0)
	event := func(verb string) audit.Event {
		return audit.Event{Stage: "ResponseComplete", Verb: verb, User: audit.User{Username: user}, Finished: now}
	}
	other, early, begun := event("create"), event("update"), event("watch")
	other.User.Username = "system:serviceaccount:moorage-system:moorage-controller"
	early.Finished = now.Add(-time.Second)
	begun.Stage = "ResponseStarted"
	events := []audit.Event{other, early, begun, event("watch"), event("get"), event("list"), event("create"), event("update"), event("patch")}
	if got, want := count(events, now), (result.Requests{Writes: 3, Reads: 2, Watches: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A report counts once it names all volumes in all pods, and no fault.
func TestWhole(t *testing.T) {
	good := func() v1alpha1.NodeMountReportStatus {
		pods := []v1alpha1.PublishedPod{{PodUID: "p", Mounted: v1alpha1.NodeYes}}
		return v1alpha1.NodeMountReportStatus{
			Observed: &metav1.Time{}, Summary: &v1alpha1.NodeMountReportSummary{},
			Volumes: []v1alpha1.ReportedVolume{{Handle: "a", Mounted: v1alpha1.NodeYes, Published: pods}, {Handle: "b", Mounted: v1alpha1.NodeYes, Published: pods}},
		}
	}
	if err := whole(good(), size{2, 1}); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*v1alpha1.NodeMountReportStatus){
		"not looked":     func(s *v1alpha1.NodeMountReportStatus) { s.Observed = nil },
		"unknown":        func(s *v1alpha1.NodeMountReportStatus) { s.Unknown = []string{"a link"} },
		"forgotten":      func(s *v1alpha1.NodeMountReportStatus) { s.Summary.Forgotten = 1 },
		"unread":         func(s *v1alpha1.NodeMountReportStatus) { s.Summary.Unknown = 1 },
		"a volume fewer": func(s *v1alpha1.NodeMountReportStatus) { s.Volumes = s.Volumes[:1] },
		"a pod fewer":    func(s *v1alpha1.NodeMountReportStatus) { s.Volumes[0].Published = nil },
	} {
		s := good()
		spoil(&s)
		if whole(s, size{2, 1}) == nil {
			t.Errorf("%s: it is taken for whole", name)
		}
	}
	if err := names(good(), "a", true); err != nil {
		t.Error(err)
	}
	if names(good(), "a", false) == nil || names(good(), "c", true) == nil || names(good(), "c", false) != nil {
		t.Error("what a word names is not what is there")
	}
	published := good()
	published.Volumes[0].Published[0].Mounted = v1alpha1.NodeNo
	if names(published, "a", true) == nil {
		t.Error("a volume that is not mounted in its pod is taken for mounted")
	}
}

func TestRecords(t *testing.T) {
	k := &kubelet{root: t.TempDir()}
	for _, folder := range []string{filepath.Dir(k.staged(7)), filepath.Dir(k.published(7, 3))} {
		if err := k.record(folder, map[string]string{"driverName": driver, "volumeHandle": handle(7), "specVolID": persistentVolume(7)}); err != nil {
			t.Fatal(err)
		}
	}
	facts := nodemounts.Read(os.DirFS(k.root), nodemounts.ReadMounts(strings.NewReader("1 0 0:1 / / rw shared:1 - ext4 /dev/a rw\n"), k.root), nodemounts.Kernel{})
	if len(facts.Unknown) > 0 || len(facts.Volumes) != 1 {
		t.Fatalf("it reads %+v", facts)
	}
	if v := facts.Volumes[0]; v.Handle != handle(7) || v.PersistentVolume != persistentVolume(7) || v.Staged != nodemounts.Yes || len(v.Published) != 1 || v.Forgotten {
		t.Errorf("it reads %+v", v)
	}
}

func TestFlags(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "moorage-node")
	if err := os.WriteFile(binary, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	good := flags{binary: binary, volumes: 1, pods: 1, changes: 1, rest: probeEvery}
	if l, err := good.load(); err != nil || len(l.cases) != 2 {
		t.Errorf("%+v, %v", l, err)
	}
	for name, spoil := range map[string]func(*flags){
		"no binary": func(f *flags) { f.binary += "s" }, "no volumes": func(f *flags) { f.volumes = 0 }, "no pods": func(f *flags) { f.pods = 0 },
		"no changes": func(f *flags) { f.changes = 0 }, "no rest": func(f *flags) { f.rest = 0 },
	} {
		f := good
		spoil(&f)
		if _, err := f.load(); err == nil {
			t.Errorf("%s: it is measured", name)
		}
	}
}
