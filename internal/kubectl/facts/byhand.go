// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// ByHand is what a person does at a node: something to know, or a command.
type ByHand struct {
	Say string `json:"say,omitempty"`
	Run string `json:"run,omitempty"`
}

// Folders of kubelets: where they have their own, unless told otherwise, and what is below it.
const (
	kubeletFolder = "/var/lib/kubelet"
	devicesFolder = "plugins/kubernetes.io/csi/volumeDevices"
	subpaths      = "volume-subpaths"
)

// stepsAt are the steps at one node after which nothing of a volume is left there.
func (w *World) stepsAt(has NodeHas) []ByHand {
	word := w.words[ledger.NodeName(has.Node)]
	block := has.Mode == string(corev1.PersistentVolumeBlock)
	var s byHand
	s.say("At node %s, and at no other, as root. Driver %s, volume %s; the kubelet's folder is taken to be %s", has.Node, has.Driver, has.handle, kubeletFolder)
	if _, note := w.wordState(ledger.NodeName(has.Node), word); note != "" {
		s.say("Look before you trust these paths: %s", note)
	}
	if say, _ := repairSaid(word, has); say != "" {
		s.say("%s", say)
	}
	switch {
	case !has.plain(), block && has.pv == "":
		s.say("Its names are not as kubelets make them, so that no command can be given: run a pod with it there and delete that, or drain the node, reboot the machine, and remove its record (vol_data.json)")
	case block:
		s.block(has.pv)
	case has.alive != "":
		s.say("Its file system lives on (/sys/fs/%s) though its mount has left the mount table: a process has a file of it open, another mount namespace has it mounted, it is frozen, or it is being written out. It goes when that ends; docs/operate/runbook.md#moorageforgottenstagingpath says how you find out", has.alive)
	default:
		for _, p := range has.pods {
			s.published(has.pv, p, !w.hasPod(ledger.NodeName(has.Node), p.PodUID))
		}
		s.staged(has)
	}
	return s.steps
}

// byHand puts steps together.
type byHand struct{ steps []ByHand }

func (s *byHand) say(format string, args ...any) {
	s.steps = append(s.steps, ByHand{Say: fmt.Sprintf(format, args...)})
}

func (s *byHand) run(format string, args ...any) {
	s.steps = append(s.steps, ByHand{Run: fmt.Sprintf(format, args...)})
}

// enter goes to a folder of the kubelet's, in short lines, which a terminal does not break.
func (s *byHand) enter(folder, below string) {
	s.run("cd %s", path.Join(kubeletFolder, folder))
	s.run("cd %s", below)
}

// unmount unmounts what is mounted in the folder that one is in.
func (s *byHand) unmount(mounts, then string) {
	s.say("Nothing may use it. Who does?")
	s.run("fuser -vMm %s", mounts) // -M: of what is no mount, it would list who uses the disk that it is on
	s.say("Then unmount it%s", then)
	s.run("umount %s", mounts)
}

// block are the steps for a block volume, of which the kubelet has folders and files by the name of its
// PersistentVolume, and the driver more than that (csi_block.go:480, cleanupOrphanDeviceFiles).
// The record goes last: it says which volume the others are of.
func (s *byHand) block(pv string) {
	s.say("Only its driver can take a block volume down: run a pod with it there, as above. If none can run there, drain the node, reboot the machine, and then, where no pod there uses the volume again, remove what is left of it. Never use rm -r")
	s.run("cd %s", path.Join(kubeletFolder, devicesFolder))
	s.run("rm -df publish/%s/*", pv)
	s.run("rm -df %s/dev/*", pv)
	s.run("rm -df staging/%s", pv)
	s.run("rm -f %s/data/vol_data.json", pv)
}

// published are the steps for a pod that has the volume. Where the pod's folder does not name it, a
// subpath of it is mounted for the pod.
func (s *byHand) published(pv string, p v1alpha1.PublishedPod, gone bool) {
	mounted := p.Mounted != v1alpha1.NodeNo
	switch {
	case !mounted && !gone:
	case pv == "":
		s.say("It is mounted for pod %s, too. Unmount that first: findmnt -l | grep %s shows where", p.PodUID, p.PodUID)
	case !p.PodFolder:
		s.enter(path.Join("pods", p.PodUID), path.Join(subpaths, pv))
		s.unmount("*/*", ": the subpaths of a pod that is gone have no record")
	default:
		s.enter(path.Join("pods", p.PodUID), path.Join("volumes/kubernetes.io~csi", pv))
		if mounted {
			s.unmount("mount", "")
		}
		if gone { // else its kubelet does
			s.run("rm -df vol_data.json mount")
		}
	}
}

// staged are the steps for where the volume is staged.
func (s *byHand) staged(has NodeHas) {
	mounted := has.Mounted != string(v1alpha1.NodeNo)
	if has.isSubpath() || !mounted && has.Staged == string(v1alpha1.NodeNo) {
		return
	}
	folder, mount := path.Split(has.Path)
	drivers, volume := path.Split(path.Clean(folder))
	if !mounted {
		s.say("Nothing is mounted there: what is left is the kubelet's record of it. But if the machine was not booted since that was made, its driver may have something there that is no mount: reboot first. Then remove the record")
	}
	s.enter(drivers, volume)
	if mounted {
		s.unmount(mount, ", and remove the kubelet's record of it")
	}
	s.run("rm vol_data.json")
}

// isSubpath says whether it is known only by a subpath that is mounted.
func (x *NodeHas) isSubpath() bool {
	return strings.HasPrefix(x.Path, "pods/") && strings.Contains(x.Path, "/"+subpaths+"/")
}

// plainName is a path or a name as kubelets make them, which a shell takes as it stands.
var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~-]*(/[A-Za-z0-9][A-Za-z0-9._~-]*)*$`)

// plain says whether what is to be unmounted can be named in a command.
func (x *NodeHas) plain() bool {
	return plainName.MatchString(x.Path) && (x.pv == "" || plainName.MatchString(x.pv)) &&
		!slices.ContainsFunc(x.pods, func(p v1alpha1.PublishedPod) bool { return !plainName.MatchString(p.PodUID) })
}
