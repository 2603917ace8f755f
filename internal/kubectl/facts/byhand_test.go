// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/nodevolumes"
)

const podUID = "7d0a3c52-1f70-4c55-9d2f-0d8f6a1e7b11"

// A machine is a kubelet's folder and what is mounted in it.
type machine struct {
	t      *testing.T
	root   string
	mounts []string
	ran    []string
}

func newMachine(t *testing.T) *machine {
	m := &machine{t: t, root: t.TempDir()}
	m.folder("pods")
	return m
}

func (m *machine) folder(name string) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Join(m.root, name), 0o750); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) file(name, text string) {
	m.t.Helper()
	m.folder(filepath.Dir(name))
	if err := os.WriteFile(filepath.Join(m.root, name), []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// record writes what the kubelet writes of the volume.
func (m *machine) record(folder string) {
	m.t.Helper()
	text, err := json.Marshal(map[string]string{"driverName": driver, "volumeHandle": "h", "specVolID": "pv-h", "volumeLifecycleMode": "Persistent"})
	if err != nil {
		m.t.Fatal(err)
	}
	m.file(folder+"/vol_data.json", string(text))
}

func (m *machine) mount(point string) {
	m.folder(point)
	m.mounts = append(m.mounts, point)
}

// word is what moorage-node says of the machine.
func (m *machine) word() *v1alpha1.NodeVolumes {
	m.t.Helper()
	table := fmt.Sprintf("21 1 8:1 / %s rw shared:1 - ext4 /dev/a rw\n", m.root)
	for i, point := range m.mounts {
		table += fmt.Sprintf("%d 21 8:2 / %s rw shared:2 - ext4 /dev/b rw\n", 30+i, filepath.Join(m.root, point))
	}
	root, err := os.OpenRoot(m.root)
	if err != nil {
		m.t.Fatal(err)
	}
	defer root.Close()
	said := nodevolumes.Read(nodevolumes.Tree(root), nodevolumes.ReadMounts(strings.NewReader(table), m.root), nodevolumes.Kernel{})
	if len(said.Unknown) > 0 {
		m.t.Fatalf("can't be read: %q", said.Unknown)
	}
	word := &v1alpha1.NodeVolumes{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "word"}}
	word.Status.Observed, word.Status.NodeUID = new(metav1.NewTime(noon())), "n-uid"
	for _, v := range said.Volumes {
		out := v1alpha1.NodeVolume{
			Path: v.Path, Driver: v.Driver, Handle: v.Handle, PersistentVolume: v.PersistentVolume, Mode: string(v.Mode),
			Staged: v1alpha1.NodeAnswer(v.Staged), Mounted: v1alpha1.NodeAnswer(v.Mounted), Forgotten: v.Forgotten, Unknown: v.Unknown,
		}
		for _, p := range v.Published {
			out.Published = append(out.Published, v1alpha1.PublishedPod{PodUID: p.PodUID, PodFolder: p.PodFolder, Mounted: v1alpha1.NodeAnswer(p.Mounted)})
		}
		word.Status.Volumes = append(word.Status.Volumes, out)
	}
	return word
}

// follow does what it is told to, literally, and as a terminal does goes on after a command that fails.
func (m *machine) follow(steps []ByHand) {
	m.t.Helper()
	at := m.root
	for _, step := range steps {
		if step.Run == "" {
			continue
		}
		command := strings.ReplaceAll(step.Run, kubeletFolder, m.root)
		m.ran = append(m.ran, step.Run)
		switch name, rest, _ := strings.Cut(command, " "); name {
		case "cd":
			if filepath.IsAbs(rest) {
				at = rest
			} else {
				at = filepath.Join(at, rest)
			}
		case "fuser", "umount":
			m.onMounts(at, command)
		default:
			shell := exec.Command("sh", "-c", command)
			shell.Dir = at
			if out, err := shell.CombinedOutput(); err != nil {
				m.t.Errorf("%s: %v: %s", command, err, out)
			}
		}
	}
}

// onMounts plays a command about mounts, which fails for what is none.
func (m *machine) onMounts(at, command string) {
	words := strings.Fields(command)
	points, err := filepath.Glob(filepath.Join(at, words[len(words)-1]))
	if err != nil || len(points) == 0 {
		m.t.Errorf("%s: nothing there: %v", command, err)
	}
	for _, point := range points {
		i := slices.Index(m.mounts, strings.TrimPrefix(point, m.root+"/"))
		if i < 0 {
			m.t.Errorf("%s: %s is not mounted", command, point)
		} else if words[0] == "umount" {
			m.mounts = slices.Delete(m.mounts, i, i+1)
		}
	}
}

// forgetful are machines whose kubelets have forgotten a volume.
func forgetful() map[string]func(*machine) {
	const devices = devicesFolder + "/"
	globalMount := nodevolumes.StagingPath(driver, "h")
	staging := filepath.Dir(globalMount)
	pod := "pods/" + podUID
	return map[string]func(*machine){
		"staged":               func(m *machine) { m.record(staging); m.mount(globalMount) },
		"staged, and rebooted": func(m *machine) { m.record(staging); m.folder(globalMount) },
		"staged, and mounted for a pod that is gone": func(m *machine) {
			m.record(staging)
			m.mount(globalMount)
			m.record(pod + "/volumes/kubernetes.io~csi/pv-h")
			m.mount(pod + "/volumes/kubernetes.io~csi/pv-h/mount")
		},
		"a record of a pod that is gone": func(m *machine) {
			m.record(pod + "/volumes/kubernetes.io~csi/pv-h")
			m.folder(pod + "/volumes/kubernetes.io~csi/pv-h/mount")
		},
		"subpaths": func(m *machine) {
			m.mount(pod + "/volume-subpaths/pv-h/app/0")
			m.mount(pod + "/volume-subpaths/pv-h/app/1")
			m.mount(pod + "/volume-subpaths/pv-h/proxy/0")
		},
		"staged, and a subpath": func(m *machine) {
			m.record(staging)
			m.mount(globalMount)
			m.mount(pod + "/volume-subpaths/pv-h/app/0")
		},
		"block: a record": func(m *machine) { m.record(devices + "pv-h/data") },
		"block: staged":   func(m *machine) { m.record(devices + "pv-h/data"); m.folder(devices + "staging/pv-h") },
		"block: staged, and without a record": func(m *machine) {
			m.folder(devices + "pv-h/data")
			m.folder(devices + "staging/pv-h")
		},
		"block: published": func(m *machine) {
			m.record(devices + "pv-h/data")
			m.file(devices+"pv-h/dev/"+podUID, "")
			m.file(devices+"staging/pv-h", "") // some drivers have a file there
			m.file(devices+"publish/pv-h/"+podUID, "")
		},
	}
}

// After the steps for a volume that a kubelet has forgotten nothing of it is left in
// moorage-node's word; and none of the commands is about something that is not there.
func TestStepsLeaveNothing(t *testing.T) {
	for name, prepare := range forgetful() {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			prepare(m)
			o := left()
			o.NodeVolumes = []*v1alpha1.NodeVolumes{m.word()}
			w := NewWorld(o, noon())
			said := w.nodesSaying(ledger.VolumeID{Driver: driver, Handle: "h"})
			if len(said) != 1 {
				t.Fatalf("it says %+v", o.NodeVolumes[0].Status.Volumes)
			}
			if !said[0].Odd() {
				t.Errorf("nobody is told of it: %+v", said[0])
			}
			m.follow(w.stepsAt(said[0]))
			if left := m.word().Status.Volumes; len(left) > 0 || len(m.mounts) > 0 {
				t.Errorf("left %+v, mounted %q after\n%s", left, m.mounts, strings.Join(m.ran, "\n"))
			}
		})
	}
}

// Nothing is to be unmounted, and no record to be removed, that a pod which lives there has; nor
// anything by a name that a shell takes apart.
func TestStepsSpare(t *testing.T) {
	var s byHand
	s.published("pv-h", v1alpha1.PublishedPod{PodUID: podUID, PodFolder: true, Mounted: v1alpha1.NodeNo}, false)
	if len(s.steps) > 0 {
		t.Errorf("of a pod that is there: %+v", s.steps)
	}
	w := NewWorld(left(), noon())
	for _, has := range []NodeHas{
		{Node: "n", Mode: "Block", Path: devicesFolder + "/staging/x"},
		{Node: "n", Mode: "Block", Path: devicesFolder + "/staging/x", pv: "a b"},
		{Node: "n", Mode: "Filesystem", Path: "plugins/$(reboot)/globalmount"},
	} {
		for _, step := range w.stepsAt(has) {
			if step.Run != "" {
				t.Errorf("%+v: %s", has, step.Run)
			}
		}
	}
}
