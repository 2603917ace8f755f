// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

type killPhase string

const (
	killBefore killPhase = "before"     // without an effect yet
	killUnder  killPhase = "during"     // with its effect; the kubelet has no answer
	killAfter  killPhase = "just after" // within afterAnswer of the answer
)

type killInstant struct {
	call diskapi.Call
	when killPhase
	// name is for an instant between two writes to the disk, where no call can be held: record then changes
	// the files.
	name   string
	record func(volumeFiles) error
}

func (i killInstant) String() string {
	if i.name != "" {
		return i.name
	}
	return fmt.Sprintf("%s %s", i.when, i.call)
}

func (i killInstant) unmounts() bool {
	return i.call == diskapi.NodeUnpublish || i.call == diskapi.NodeUnstage
}

// The kubelet's files and their order are those of Kubernetes 1.37.1, pkg/volume/csi: csi_attacher.go:274
// MountDevice, csi_mounter.go:104 SetUpAt, csi_mounter.go:583 removeMountDir.
func killInstants() []killInstant {
	list := []killInstant{{
		call: diskapi.ControllerPublish, when: killBefore,
		name: "with the record of the staging half written", record: volumeFiles.halfStaging,
	}}
	for _, call := range diskapi.MountCalls() {
		for _, when := range []killPhase{killBefore, killUnder, killAfter} {
			list = append(list, killInstant{call: call, when: when})
		}
		for _, r := range killRecords(call) {
			list = append(list, killInstant{call: call, when: killUnder, name: r.name, record: r.change})
		}
	}
	return list
}

type killRecord struct {
	name   string
	change func(volumeFiles) error
}

func killRecords(after diskapi.Call) []killRecord {
	switch after {
	case diskapi.NodeStage:
		return []killRecord{{"with the pod's record half written", volumeFiles.halfPod}}
	case diskapi.NodeUnpublish:
		return []killRecord{
			{"with the pod's record removed", volumeFiles.withoutPodRecord},
			{"with the pod's folder of the volume removed", volumeFiles.withoutPodFolder},
		}
	case diskapi.NodeUnstage:
		return []killRecord{
			{"with the staging path removed", volumeFiles.withoutStagingPath},
			{"with the record of the staging removed", volumeFiles.withoutStagingRecord},
			{"with the folder of the staging removed", volumeFiles.withoutStaging},
		}
	}
	return nil
}

type volumeFiles struct {
	staging string // has vol_data.json and globalmount
	pod     string // has vol_data.json and mount
}

const (
	volumeRecord = "vol_data.json"
	stagingMount = "globalmount"
)

func filesOf(cluster *sandbox.Cluster, node, handle, volume, podUID string) volumeFiles {
	root := cluster.KubeletFolder(node)
	return volumeFiles{
		staging: filepath.Join(root, filepath.Dir(sandbox.StagingPath(handle))),
		pod:     filepath.Join(root, "pods", podUID, "volumes", "kubernetes.io~csi", volume),
	}
}

func (f volumeFiles) halfStaging() error {
	if err := os.MkdirAll(filepath.Join(f.staging, stagingMount), 0o750); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(f.staging, volumeRecord), nil, 0o644)
}

func (f volumeFiles) halfPod() error {
	if err := os.MkdirAll(f.pod, 0o750); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(f.pod, volumeRecord), nil, 0o644)
}

func (f volumeFiles) withoutPodRecord() error {
	return removeInOrder(filepath.Join(f.pod, "mount"), filepath.Join(f.pod, volumeRecord))
}

func (f volumeFiles) withoutPodFolder() error {
	return errors.Join(f.withoutPodRecord(), removeInOrder(f.pod))
}

func (f volumeFiles) withoutStagingPath() error {
	return removeInOrder(filepath.Join(f.staging, stagingMount))
}

func (f volumeFiles) withoutStagingRecord() error {
	return errors.Join(f.withoutStagingPath(), removeInOrder(filepath.Join(f.staging, volumeRecord)))
}

func (f volumeFiles) withoutStaging() error {
	return errors.Join(f.withoutStagingRecord(), removeInOrder(f.staging))
}

func removeInOrder(paths ...string) error {
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("leave the disk as a kill does: %w", err)
		}
	}
	return nil
}
