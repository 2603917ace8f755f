// SPDX-License-Identifier: Apache-2.0

package nodemounts_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/moorage-dev/moorage/internal/nodemounts"
)

const (
	csi     = "plugins/kubernetes.io/csi/"
	devices = csi + "volumeDevices/"
	driver  = "disk.example.com"
)

type node struct {
	files   fstest.MapFS
	mounts  []string
	devices map[string]string
}

func newNode() *node {
	return &node{files: fstest.MapFS{"pods": {Mode: fs.ModeDir}}}
}

func (n *node) record(folder string, fields map[string]string) {
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err)
	}
	n.files[folder+"/vol_data.json"] = &fstest.MapFile{Data: append(text, '\n')}
}

func (n *node) dir(name string)   { n.files[name] = &fstest.MapFile{Mode: fs.ModeDir | 0o750} }
func (n *node) mount(name string) { n.dir(name); n.mounts = append(n.mounts, name) }

func stagingFolder(handle string) string {
	sum := sha256.Sum256([]byte(handle))
	return csi + driver + "/" + hex.EncodeToString(sum[:])
}

func (n *node) stage(handle string) {
	n.record(stagingFolder(handle), map[string]string{"driverName": driver, "volumeHandle": handle})
	n.mount(stagingFolder(handle) + "/globalmount")
}

func podFolder(pod, pv string) string { return "pods/" + pod + "/volumes/kubernetes.io~csi/" + pv }

func (n *node) publish(pod, pv, handle string) {
	n.record(podFolder(pod, pv), map[string]string{"driverName": driver, "volumeHandle": handle, "specVolID": pv, "volumeLifecycleMode": "Persistent", "nodeName": "n1"})
	n.mount(podFolder(pod, pv) + "/mount")
}

func (n *node) ephemeral(pod, name string) {
	n.record(podFolder(pod, name), map[string]string{"driverName": driver, "volumeHandle": "csi-1", "specVolID": name, "volumeLifecycleMode": "Ephemeral"})
	n.mount(podFolder(pod, name) + "/mount")
}

// The container has the kubelet's folder with HostToContainer.
func (n *node) table() string {
	lines := []string{
		"1 0 0:1 / / rw - overlay overlay rw",
		"2 1 8:1 /var/lib/kubelet /var/lib/kubelet ro,relatime master:7 - ext4 /dev/sda1 rw",
	}
	for i, m := range n.mounts {
		device := cmp.Or(n.devices[m], fmt.Sprintf("8:%d", 16+i))
		lines = append(lines, fmt.Sprintf("%d 2 %s / /var/lib/kubelet/%s rw,relatime master:%d - ext4 /dev/sdb rw", 10+i, device, strings.ReplaceAll(m, " ", `\040`), 20+i))
	}
	return strings.Join(lines, "\n") + "\n"
}

func (n *node) read() nodemounts.Facts {
	return nodemounts.Read(n.files, nodemounts.ReadMounts(strings.NewReader(n.table()), "/var/lib/kubelet"), nodemounts.Kernel{})
}

func words(f nodemounts.Facts) string {
	var b strings.Builder
	for _, v := range f.Volumes {
		fmt.Fprintf(&b, "%s %s pv=%s %s staged=%s mounted=%s", v.Driver, v.Handle, v.PersistentVolume, v.Mode, v.Staged, v.Mounted)
		for _, p := range v.Published {
			fmt.Fprintf(&b, " pod=%s/%t/%s", p.PodUID, p.PodFolder, p.Mounted)
		}
		if v.Forgotten {
			b.WriteString(" forgotten")
		}
		if v.Unknown != "" {
			b.WriteString(" unknown: " + v.Unknown)
		}
		b.WriteString("\n")
	}
	for _, u := range f.Unknown {
		b.WriteString("unknown: " + u + "\n")
	}
	if len(f.Unlisted) > 0 {
		fmt.Fprintf(&b, "unlisted: %d\n", len(f.Unlisted))
	}
	return b.String()
}

func TestRead(t *testing.T) {
	for name, test := range map[string]struct {
		node func(*node)
		want string
	}{
		"nothing": {func(*node) {}, ""},
		"a volume of two pods": {func(n *node) {
			n.stage("vol 1")
			n.publish("uid-b", "pv-1", "vol 1")
			n.publish("uid-a", "pv-1", "vol 1")
		}, "disk.example.com vol 1 pv=pv-1 Filesystem staged=Yes mounted=Yes pod=uid-a/true/Yes pod=uid-b/true/Yes\n"},
		// The kubelet was killed between NodeUnpublish and NodeUnstage.
		"staged, and no pod's folder names it": {func(n *node) {
			n.stage("vol-1")
			n.dir("pods/uid-a/volumes/kubernetes.io~csi")
		}, "disk.example.com vol-1 pv= Filesystem staged=Yes mounted=Yes forgotten\n"},
		// Some drivers mount below the path, or nothing.
		"mounted below the staging path": {func(n *node) {
			n.record(stagingFolder("v"), map[string]string{"driverName": driver, "volumeHandle": "v"})
			n.mount(stagingFolder("v") + "/globalmount/0001")
			n.publish("uid-a", "pv", "v")
		}, "disk.example.com v pv=pv Filesystem staged=Yes mounted=Yes pod=uid-a/true/Yes\n"},
		"staged without a mount": {func(n *node) {
			n.record(stagingFolder("v"), map[string]string{"driverName": driver, "volumeHandle": "v"})
			n.dir(stagingFolder("v") + "/globalmount")
		}, "disk.example.com v pv= Filesystem staged=Yes mounted=No forgotten\n"},
		// NodeStage was never called: the record comes first.
		"a folder without record and mount": {func(n *node) { n.dir(stagingFolder("v") + "/globalmount") }, ""},
		"a mount without a record": {func(n *node) { n.mount(csi + driver + "/abc/globalmount") },
			"disk.example.com  pv= Filesystem staged=Yes mounted=Yes forgotten unknown: something is mounted, and there is no vol_data.json\n"},
		"a driver that does not stage": {func(n *node) { n.publish("uid-a", "pv", "v") },
			"disk.example.com v pv=pv Filesystem staged=No mounted=No pod=uid-a/true/Yes\n"},
		"published without a mount": {func(n *node) {
			n.stage("v")
			n.record(podFolder("uid-a", "pv"), map[string]string{"driverName": driver, "volumeHandle": "v", "specVolID": "pv"})
		}, "disk.example.com v pv=pv Filesystem staged=Yes mounted=Yes pod=uid-a/true/No\n"},
		"an ephemeral volume": {func(n *node) { n.ephemeral("uid-a", "inline") }, ""},
		// Kubelets have one folder and record for both: the rest may be the PersistentVolume's.
		"an ephemeral volume, and another one mounted with it": {func(n *node) {
			n.ephemeral("uid-a", "pvc-1")
			n.mount(podFolder("uid-a", "pvc-1") + "/mount")
		}, "  pv=pvc-1 Filesystem staged=No mounted=Yes pod=uid-a/true/Yes unknown: the record is of a volume of the pod's own, and the PersistentVolume of its name may be mounted with it\n"},
		"an ephemeral volume that the table has twice": {func(n *node) {
			n.ephemeral("uid-a", "pvc-1")
			n.mount(podFolder("uid-a", "pvc-1") + "/mount")
			n.devices = map[string]string{podFolder("uid-a", "pvc-1") + "/mount": "0:44"}
		}, ""},
		"an ephemeral volume of the name of a known PersistentVolume": {func(n *node) {
			n.ephemeral("uid-a", "pv-b")
			n.record(devices+"pv-b/data", map[string]string{"driverName": driver, "volumeHandle": "b", "specVolID": "pv-b"})
			n.dir(devices + "staging/pv-b")
		}, "disk.example.com b pv=pv-b Block staged=Yes mounted=No forgotten\n" +
			"  pv=pv-b Filesystem staged=No mounted=Yes pod=uid-a/true/Yes unknown: the record is of a volume of the pod's own, and the PersistentVolume of its name may be mounted with it\n"},
		"an ephemeral volume of that name, not mounted": {func(n *node) {
			n.ephemeral("uid-a", "pv-b")
			n.mounts = nil
			n.publish("uid-b", "pv-b", "b")
		}, "disk.example.com b pv=pv-b Filesystem staged=No mounted=No pod=uid-b/true/Yes\n"},
		"staged by Kubernetes 1.23": {func(n *node) {
			n.record(csi+"pv/pv-1", map[string]string{"driverName": driver, "volumeHandle": "v"})
			n.mount(csi + "pv/pv-1/globalmount")
			n.publish("uid-a", "pv-1", "v")
		}, "disk.example.com v pv=pv-1 Filesystem staged=Yes mounted=Yes pod=uid-a/true/Yes\n"},
		"another record than the folder's": {func(n *node) {
			n.record(stagingFolder("v"), map[string]string{"driverName": driver, "volumeHandle": "w"})
			n.publish("uid-a", "pv-w", "w")
		}, "disk.example.com w pv=pv-w Filesystem staged=Yes mounted=No pod=uid-a/true/Yes unknown: the record is of another volume than the folder\n"},
		"a block volume": {func(n *node) {
			n.record(devices+"pv-b/data", map[string]string{"driverName": driver, "volumeHandle": "b", "specVolID": "pv-b"})
			n.mount(devices + "pv-b/dev/uid-a")
			n.dir(devices + "staging/pv-b")
			n.mount(devices + "publish/pv-b/uid-a")
			n.files["pods/uid-a/volumeDevices/kubernetes.io~csi/pv-b"] = &fstest.MapFile{Mode: fs.ModeSymlink}
		}, "disk.example.com b pv=pv-b Block staged=Yes mounted=No pod=uid-a/true/Yes\n"},
		"a forgotten block volume": {func(n *node) {
			n.record(devices+"pv-b/data", map[string]string{"driverName": driver, "volumeHandle": "b", "specVolID": "pv-b"})
			n.dir(devices + "staging/pv-b")
		}, "disk.example.com b pv=pv-b Block staged=Yes mounted=No forgotten\n"},
		"a block volume whose driver's path is left": {func(n *node) {
			n.mount(devices + "publish/pv-b/uid-a")
		}, "  pv=pv-b Block staged=No mounted=No pod=uid-a/false/Yes forgotten unknown: there is no vol_data.json\n"},
		"a block volume of a driver that does not stage, before it is published": {func(n *node) {
			n.record(devices+"pv-b/data", map[string]string{"driverName": driver, "volumeHandle": "b", "specVolID": "pv-b"})
			n.dir(devices + "pv-b/dev")
			n.dir(devices + "publish/pv-b")
		}, "disk.example.com b pv=pv-b Block staged=Unknown mounted=No unknown: there is a record of it, and nothing else shows whether the driver has it\n"},
		// Its path has the name of the PersistentVolume.
		"a subpath's mount that is left": {func(n *node) {
			n.mount("pods/uid-a/volume-subpaths/pv/app/0")
			n.mount("pods/uid-a/volume-subpaths/pv/app/1")
			n.mount("pods/uid-b/volume-subpaths/pv/app/0")
		}, "  pv=pv Filesystem staged=No mounted=Yes pod=uid-a/false/Yes forgotten unknown: a subpath of it is mounted, and the pod has no folder of volumes any more\n" +
			"  pv=pv Filesystem staged=No mounted=Yes pod=uid-b/false/Yes forgotten unknown: a subpath of it is mounted, and the pod has no folder of volumes any more\n"},
		"a subpath's mount that is left of a forgotten volume": {func(n *node) {
			n.stage("v")
			n.mount("pods/uid-a/volume-subpaths/pv/app/0")
		}, "disk.example.com v pv= Filesystem staged=Yes mounted=Yes forgotten unknown: it may be the volume of \"pv\", of which a subpath is mounted\n" +
			"  pv=pv Filesystem staged=No mounted=Yes pod=uid-a/false/Yes forgotten unknown: a subpath of it is mounted, and the pod has no folder of volumes any more\n"},
		"a subpath's mount of a pod that has the volume": {func(n *node) {
			n.record(podFolder("uid-a", "pv"), map[string]string{"driverName": driver, "volumeHandle": "v", "specVolID": "pv"})
			n.mount("pods/uid-a/volume-subpaths/pv/app/0")
		}, "disk.example.com v pv=pv Filesystem staged=No mounted=No pod=uid-a/true/Yes\n"},
		// Its device is the volume's, or another pod names the volume.
		"a subpath's mount that is left in a pod that lives": {func(n *node) {
			n.stage("v")
			n.stage("w")
			n.stage("x")
			n.publish("uid-b", "pv-x", "x")
			n.dir("pods/uid-a/volumes")
			n.mount("pods/uid-a/volume-subpaths/pv/app/0")
			n.mount("pods/uid-a/volume-subpaths/pv-x/app/0")
			n.devices = map[string]string{stagingFolder("v") + "/globalmount": "8:99", "pods/uid-a/volume-subpaths/pv/app/0": "8:99"}
		}, "disk.example.com v pv= Filesystem staged=Yes mounted=Yes pod=uid-a/false/Yes forgotten\n" +
			"disk.example.com w pv= Filesystem staged=Yes mounted=Yes forgotten\n" +
			"disk.example.com x pv=pv-x Filesystem staged=Yes mounted=Yes pod=uid-a/false/Yes pod=uid-b/true/Yes\n"},
		"a subpath's mount of a host's path": {func(n *node) {
			n.dir("pods/uid-a/volumes")
			n.mount("pods/uid-a/volume-subpaths/host/app/0")
		}, ""},
		"subpaths' mounts of other volumes": {func(n *node) {
			n.record(podFolder("uid-a", "inline"), map[string]string{"driverName": driver, "volumeHandle": "csi-1", "specVolID": "inline", "volumeLifecycleMode": "Ephemeral"})
			n.dir("pods/uid-a/volumes/kubernetes.io~configmap/settings")
			n.mount("pods/uid-a/volumes/kubernetes.io~nfs/share")
			for _, name := range []string{"inline", "settings", "share"} {
				n.mount("pods/uid-a/volume-subpaths/" + name + "/app/0")
			}
		}, ""},
		// The later record replaces the PersistentVolume's; its mount remains.
		"a pod's own volume over a PersistentVolume, with one mount": {func(n *node) {
			n.stage("v")
			n.ephemeral("uid-a", "pv")
			n.devices = map[string]string{stagingFolder("v") + "/globalmount": "8:99", podFolder("uid-a", "pv") + "/mount": "8:99"}
		}, "disk.example.com v pv= Filesystem staged=Yes mounted=Yes pod=uid-a/true/Yes\n"},
		"a pod's own volume": {func(n *node) {
			n.stage("v")
			n.ephemeral("uid-a", "own")
		}, "disk.example.com v pv= Filesystem staged=Yes mounted=Yes forgotten\n"},
		"a mount beside subpaths": {func(n *node) { n.mount("pods/uid-a/volume-subpaths") }, ""},
		"a subpath's mount of no name of Kubernetes": {func(n *node) { n.mounts = append(n.mounts, "pods/uid-a/volume-subpaths/x\xff/app/0") },
			`unknown: a name that is not UTF-8, or longer than Kubernetes has them: "pods/uid-a/volume-subpaths/x\xff"` + "\n"},
		"a mount that nothing tells of": {func(n *node) { n.mounts = append(n.mounts, csi+driver+"/abc/elsewhere") },
			`unknown: "plugins/kubernetes.io/csi/disk.example.com/abc/elsewhere" is mounted, and there is no record of it` + "\n"},
		// The folder's name says its volume.
		"a broken record of a pod": {func(n *node) {
			n.stage("v")
			n.publish("uid-b", "pv-w", "w")
			n.files[podFolder("uid-a", "pv")+"/vol_data.json"] = &fstest.MapFile{Data: []byte(`{"driverName":"disk`)}
			n.dir(podFolder("uid-a", "pv") + "/mount")
		}, "disk.example.com v pv= Filesystem staged=Yes mounted=Yes forgotten\n" +
			"disk.example.com w pv=pv-w Filesystem staged=No mounted=No pod=uid-b/true/Yes\n" +
			"  pv=pv Filesystem staged=No mounted=No pod=uid-a/true/No unknown: \"" + podFolder("uid-a", "pv") + "/vol_data.json\": unexpected end of JSON input\n"},
		"an empty record of a pod": {func(n *node) {
			n.files[podFolder("uid-a", "pv")+"/vol_data.json"] = &fstest.MapFile{}
		}, "  pv=pv Filesystem staged=No mounted=No pod=uid-a/true/No unknown: \"" + podFolder("uid-a", "pv") + "/vol_data.json\": unexpected end of JSON input\n"},
		"a broken record of a pod, with a mount": {func(n *node) {
			n.stage("v")
			n.files[podFolder("uid-a", "pv")+"/vol_data.json"] = &fstest.MapFile{Data: []byte(`{"driverName":"disk`)}
			n.mount(podFolder("uid-a", "pv") + "/mount")
		}, "disk.example.com v pv= Filesystem staged=Yes mounted=Yes unknown: a pod's folder could not be read, and may name it\n" +
			`unknown: "pods/uid-a/volumes/kubernetes.io~csi/pv/vol_data.json": unexpected end of JSON input` + "\n"},
		"a pod's mount without a record": {func(n *node) {
			n.stage("v")
			n.mount(podFolder("uid-a", "pv") + "/mount")
		}, "disk.example.com v pv= Filesystem staged=Yes mounted=Yes unknown: a pod's folder could not be read, and may name it\n" +
			`unknown: "pods/uid-a/volumes/kubernetes.io~csi/pv" may have a volume mounted, and there is no vol_data.json` + "\n"},
		"a broken record of what is staged": {func(n *node) {
			n.files[stagingFolder("v")+"/vol_data.json"] = &fstest.MapFile{Data: []byte("[]")}
		}, "disk.example.com  pv= Filesystem staged=Yes mounted=No forgotten unknown: \"" + stagingFolder("v") + "/vol_data.json\": json: cannot unmarshal array into Go value of type map[string]string\n"},
		"no folder pods": {func(n *node) { delete(n.files, "pods"); n.stage("v") },
			"disk.example.com v pv= Filesystem staged=Yes mounted=Yes unknown: a pod's folder could not be read, and may name it\n" +
				`unknown: the kubelet's folder has no "pods": open pods: file does not exist` + "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode()
			test.node(n)
			got := words(n.read())
			if sorted(got) != sorted(test.want) {
				t.Errorf("got\n%swant\n%s", got, test.want)
			}
		})
	}
}

// Another mount may hide the folders of pods.
func TestMountsBelowHiddenFolders(t *testing.T) {
	for name, test := range map[string]struct {
		with func(*node)
		want string
	}{
		"staged":          {func(n *node) { n.stage("vol-1") }, "disk.example.com vol-1"},
		"not staged":      {func(*node) {}, "pv-1"},
		"another mounted": {func(n *node) { n.stage("vol-2") }, "pv-1"},
	} {
		n := newNode()
		test.with(n)
		hidden := podFolder("uid-a", "pv-1") + "/mount"
		n.mounts = append(n.mounts, hidden, "pods")
		if test.want != "pv-1" {
			n.devices = map[string]string{hidden: "8:77", stagingFolder("vol-1") + "/globalmount": "8:77"}
		}
		found := false
		for _, v := range n.read().Volumes {
			if is := strings.TrimSpace(v.Driver + " " + v.Handle); is == test.want || is == "" && v.PersistentVolume == test.want {
				found = true
				if v.Unknown == "" || len(v.Published) != 1 || v.Published[0].Mounted != nodemounts.Yes {
					t.Errorf("%s: %+v", name, v)
				}
			}
		}
		if !found {
			t.Errorf("%s: nothing tells of the volume that is mounted for a pod", name)
		}
	}
}

// The table has the mounts at the link's target.
func TestLinksOnTheWay(t *testing.T) {
	for _, folder := range []string{"pods", "plugins"} {
		n := newNode()
		n.files[folder] = &fstest.MapFile{Data: []byte("elsewhere"), Mode: fs.ModeSymlink}
		n.dir("elsewhere")
		if facts := n.read(); !strings.Contains(strings.Join(facts.Unknown, "\n"), fmt.Sprintf("%q is a link", folder)) {
			t.Errorf("%s: %q", folder, facts.Unknown)
		}
	}
}

// The kubelet removes the record last: until then the volume is not absent.
func TestBlockVolumeGoes(t *testing.T) {
	for _, stages := range []bool{false, true} {
		n := newNode()
		n.record(devices+"pv-b/data", map[string]string{"driverName": driver, "volumeHandle": "b", "specVolID": "pv-b"})
		n.dir(devices + "pv-b/dev")
		n.mount(devices + "pv-b/dev/uid-a")
		n.dir(devices + "publish/pv-b")
		n.files[devices+"publish/pv-b/uid-a"] = &fstest.MapFile{}
		n.files["pods/uid-a/volumeDevices/kubernetes.io~csi/pv-b"] = &fstest.MapFile{Mode: fs.ModeSymlink}
		if stages {
			n.dir(devices + "staging/pv-b")
		}
		// util.UnmapBlockVolume, NodeUnpublishVolume, NodeUnstageVolume and cleanupOrphanDeviceFiles
		for _, gone := range []string{devices + "pv-b/dev/uid-a", "pods/uid-a/volumeDevices/kubernetes.io~csi/pv-b", devices + "publish/pv-b/uid-a", devices + "publish/pv-b", devices + "staging/pv-b", devices + "pv-b/dev"} {
			n.mounts = nil
			delete(n.files, gone)
			f := n.read()
			if len(f.Volumes) != 1 || f.Volumes[0].Handle != "b" || f.Volumes[0].Staged == nodemounts.No && len(f.Volumes[0].Published) == 0 {
				t.Errorf("stages %t, without %s: it says\n%s", stages, gone, words(f))
			}
		}
		delete(n.files, devices+"pv-b/data/vol_data.json")
		n.dir(devices + "pv-b/data")
		if got := words(n.read()); got != "" {
			t.Errorf("stages %t, without the record it says\n%s", stages, got)
		}
	}
}

// The record may be of any mount: nothing is forgotten.
func TestBrokenRecordWithoutMounts(t *testing.T) {
	n := newNode()
	n.stage("v")
	n.files[podFolder("uid-a", "pv")+"/vol_data.json"] = &fstest.MapFile{}
	f := nodemounts.Read(n.files, nodemounts.ReadMounts(strings.NewReader(""), "/var/lib/kubelet"), nodemounts.Kernel{})
	if len(f.Volumes) != 1 || f.Volumes[0].Forgotten || len(f.Unknown) != 2 {
		t.Errorf("%s", words(f))
	}
}

func sorted(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		for j := i; j > 0 && lines[j] < lines[j-1]; j-- {
			lines[j], lines[j-1] = lines[j-1], lines[j]
		}
	}
	return strings.Join(lines, "\n")
}

// Missing from the table means unknown, not unmounted.
func TestMountsUnknown(t *testing.T) {
	for name, table := range map[string]string{
		"empty":           "",
		"private":         "1 0 8:1 / /var/lib/kubelet rw - ext4 /dev/sda rw\n",
		"a broken line":   "1 0 8:1 / /var/lib/kubelet rw master:1 - ext4 /dev/sda rw\nhello\n",
		"half an escape":  `1 0 8:1 / /var/lib/kubelet/a\04 rw master:1 - ext4 /dev/sda rw` + "\n2 0 8:1 / /var/lib/kubelet rw master:1 - ext4 /dev/sda rw\n",
		"a line too long": "1 0 8:1 / /var/lib/kubelet rw master:1 - ext4 /dev/sda rw\n" + strings.Repeat("x", 1<<20),
	} {
		m := nodemounts.ReadMounts(strings.NewReader(table), "/var/lib/kubelet")
		if got := m.At("a"); got != nodemounts.Unknown {
			t.Errorf("%s: %s", name, got)
		}
		n := newNode()
		n.stage("v")
		n.dir(csi + driver + "/abc/globalmount") // without a record
		f := nodemounts.Read(n.files, m, nodemounts.Kernel{})
		if len(f.Unknown) == 0 || len(f.Volumes) != 2 {
			t.Fatalf("%s: %+v", name, f)
		}
		for _, v := range f.Volumes {
			if v.Staged == nodemounts.No || v.Mounted != nodemounts.Unknown {
				t.Errorf("%s: %+v", name, v)
			}
		}
	}
}

func TestMounts(t *testing.T) {
	m := nodemounts.ReadMounts(strings.NewReader(
		"1 0 8:1 / / rw shared:1 - ext4 /dev/sda rw\n"+
			"2 1 8:2 / /var/lib/kubelet/a-1 rw shared:2 - ext4 /dev/sdb rw\n"+
			`3 1 8:2 / /var/lib/kubelet/with\040space/x rw shared:2 - ext4 /dev/sdb rw`+"\n"+
			"4 1 8:2 / /var/lib/kubelets/b rw shared:2 - ext4 /dev/sdb rw\n"+
			"5 1 8:2 / /var/lib/kubelet/a/b/c rw shared:2 - ext4 /dev/sdb rw\n"), "/var/lib/kubelet/")
	for p, want := range map[string]nodemounts.Answer{
		"a-1": nodemounts.Yes, "a": nodemounts.Yes, "a/b/c": nodemounts.Yes, "a/b/c/d": nodemounts.No, "with space": nodemounts.Yes,
		"b": nodemounts.No, "a-": nodemounts.No, "with": nodemounts.No,
	} {
		if got := m.At(p); got != want {
			t.Errorf("%s: %s, want %s", p, got, want)
		}
	}
}

// Links, pipes, and huge or unreadable files are told; nothing outside is read.
func TestHostileFolder(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to, name string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	record := fmt.Sprintf(`{"driverName":%q,"volumeHandle":"secret"}`, driver)
	write(filepath.Join(outside, "vol/vol_data.json"), record)
	write(filepath.Join(dir, "pods/uid-a/x"), "")
	link(outside, csi+"linked.example.com")
	link(filepath.Join(outside, "vol/vol_data.json"), csi+driver+"/file/vol_data.json")
	write(filepath.Join(dir, csi+driver+"/huge/vol_data.json"), strings.Repeat(" ", 1<<20)+record)
	write(filepath.Join(dir, csi+driver+"/bytes/vol_data.json"), strings.ReplaceAll(record, "secret", "\xff\xfe"))
	write(filepath.Join(dir, csi+driver+"/bad\xff/vol_data.json"), record)
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	f := nodemounts.Read(nodemounts.Tree(root), nodemounts.ReadMounts(strings.NewReader((&node{}).table()), "/var/lib/kubelet"), nodemounts.Kernel{})
	got := words(f)
	for _, want := range []string{`linked.example.com" is a link`, "is not a file", "has more than 65536 bytes", "it is not UTF-8", `bad\xff`} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if strings.Contains(got, "secret") {
		t.Errorf("what is outside was read:\n%s", got)
	}
	for _, v := range f.Volumes {
		if v.Staged == nodemounts.No {
			t.Errorf("taken for unused: %+v", v)
		}
	}
}

// The API would refuse the whole report for it.
func TestOddNames(t *testing.T) {
	long := strings.Repeat("x", 254)
	torn := &fstest.MapFile{Data: []byte("{")}
	for name, change := range map[string]func(*node){
		"a driver":                func(n *node) { n.files[csi+long+"/a/vol_data.json"] = torn },
		"a staging folder":        func(n *node) { n.files[csi+driver+"/"+long+"/vol_data.json"] = torn },
		"a pod's volume":          func(n *node) { n.files[podFolder("uid-a", long)+"/vol_data.json"] = torn },
		"a pod":                   func(n *node) { n.publish(long, "pv", "v") },
		"a block volume":          func(n *node) { n.files[devices+long+"/data/vol_data.json"] = torn },
		"a staged block volume":   func(n *node) { n.dir(devices + "staging/" + long) },
		"a published one":         func(n *node) { n.dir(devices + "publish/" + long + "/uid-a") },
		"a pod of a block volume": func(n *node) { n.dir(devices + "publish/pv/" + long) },
		"a pod's block volume":    func(n *node) { n.dir("pods/uid-a/volumeDevices/kubernetes.io~csi/" + long) },
		"not UTF-8": func(n *node) {
			n.dir(devices + "staging/x\xff")
			n.dir(devices + "staging/x\xfe")
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode()
			n.dir(csi + "other.example.com/abc/globalmount")
			n.record(devices+"pv-b/data", map[string]string{"driverName": driver, "volumeHandle": "b", "specVolID": "pv-b"})
			change(n)
			f := n.read()
			if len(f.Unknown) == 0 || !strings.Contains(f.Unknown[0], "a name that") {
				t.Errorf("it says\n%s", words(f))
			}
			paths := map[string]bool{}
			for _, v := range f.Volumes {
				if paths[v.Path] || max(len(v.Driver), len(v.PersistentVolume), len(path.Base(path.Dir(v.Path)))) > 253 {
					t.Errorf("it lists %+v", v)
				}
				paths[v.Path] = true
				for _, p := range v.Published {
					if len(p.PodUID) > 253 {
						t.Errorf("it lists %+v", p)
					}
				}
			}
		})
	}
}

type wide struct{}

func (wide) Open(name string) (fs.File, error) {
	one := fstest.MapFS{}
	switch {
	case name == "pods" || name == "pods/uid-a" || name == "pods/uid-a/volumeDevices":
		one["pods/uid-a/volumeDevices/kubernetes.io~csi"] = &fstest.MapFile{Mode: fs.ModeDir}
	case name == "pods/uid-a/volumeDevices/kubernetes.io~csi":
		return &wideFolder{left: 1 << 18}, nil
	case name == csi+driver:
		return &wideFolder{left: 10_000}, nil
	case name+"/" == csi:
		one[name+"/"+driver] = &fstest.MapFile{Mode: fs.ModeDir}
	case path.Dir(name) == csi+driver:
		one[name+"/vol_data.json"] = &fstest.MapFile{}
	case path.Base(name) == "vol_data.json":
		one[name] = &fstest.MapFile{Data: []byte(strings.Repeat("y", 1000))}
	}
	return one.Open(name)
}

type wideFolder struct{ left int }

func (f *wideFolder) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		return nil, errors.New("asked for all entries at once")
	}
	var entries []fs.DirEntry
	for ; f.left > 0 && len(entries) < n; f.left-- {
		entries = append(entries, folderEntry(fmt.Sprintf("%05d", f.left)))
	}
	return entries, nil
}
func (f *wideFolder) Stat() (fs.FileInfo, error) {
	return fs.Stat(fstest.MapFS{"wide": {Mode: fs.ModeDir}}, "wide")
}
func (f *wideFolder) Read([]byte) (int, error) { return 0, errors.New("a folder") }
func (f *wideFolder) Close() error             { return nil }

type folderEntry string

func (e folderEntry) Name() string               { return string(e) }
func (e folderEntry) IsDir() bool                { return true }
func (e folderEntry) Type() fs.FileMode          { return fs.ModeDir }
func (e folderEntry) Info() (fs.FileInfo, error) { return nil, fs.ErrNotExist }

func TestTooMuch(t *testing.T) {
	f := nodemounts.Read(wide{}, nodemounts.ReadMounts(strings.NewReader(newNode().table()), "/var/lib/kubelet"), nodemounts.Kernel{})
	if len(f.Unknown) != 33 || len(f.Volumes) != 4096 {
		t.Errorf("%d volumes, %d unknown", len(f.Volumes), len(f.Unknown))
	}
	for _, v := range f.Volumes {
		if v.Forgotten {
			t.Fatalf("forgotten, though not all pods were read: %+v", v)
		}
		if len(v.Unknown) > 2048 {
			t.Fatalf("a reason of %d bytes", len(v.Unknown))
		}
	}
}

func TestMachine(t *testing.T) {
	const bootID = "proc/sys/kernel/random/boot_id"
	got := nodemounts.ReadMachine(
		fstest.MapFS{bootID: {Data: []byte("0b2c\n")}, "sys/class/dmi/id/product_uuid": {Data: []byte("EC2D-1\n")}}, bootID)
	if want := (nodemounts.Machine{BootID: "0b2c", SystemUUID: "EC2D-1"}); got != want {
		t.Errorf("got %+v", got)
	}
	none := nodemounts.ReadMachine(fstest.MapFS{bootID: {Data: []byte(strings.Repeat("x", 4096))}}, bootID)
	if none != (nodemounts.Machine{}) {
		t.Errorf("got %+v", none)
	}
}

func FuzzMounts(f *testing.F) {
	f.Add((&node{mounts: []string{"a b", path.Join(csi, "x")}}).table())
	f.Add("1 0 8:1 / /var/lib/kubelet\\040 rw shared:1 - ext4 /dev/sda rw\n")
	f.Fuzz(func(t *testing.T, table string) {
		m := nodemounts.ReadMounts(strings.NewReader(table), "/var/lib/kubelet")
		if !strings.Contains(table, "/var/lib/kubelet/") && !strings.Contains(table, `\`) && m.At("a") == nodemounts.Yes {
			t.Error("something is mounted that the table does not name")
		}
	})
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"driverName":"disk.example.com","volumeHandle":"v"}`))
	f.Add([]byte(`{"driverName":"d","volumeHandle":1}`))
	f.Add([]byte("\xff"))
	f.Fuzz(func(t *testing.T, text []byte) {
		n := newNode()
		n.files[stagingFolder("v")+"/vol_data.json"] = &fstest.MapFile{Data: text}
		facts := n.read()
		if len(facts.Volumes) != 1 || facts.Volumes[0].Staged != nodemounts.Yes {
			t.Fatalf("%+v", facts)
		}
		v := facts.Volumes[0]
		if v.Handle == "" && v.Unknown == "" {
			t.Errorf("neither a volume nor why not: %+v", v)
		}
		if _, err := json.Marshal(v); err != nil {
			t.Error(err)
		}
	})
}
