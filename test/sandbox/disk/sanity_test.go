// SPDX-License-Identifier: Apache-2.0

package disk_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"

	"github.com/moorage-dev/moorage/test/sandbox/disk"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

var (
	realDisks  = flag.Bool("real-disks", false, "have TestSanity attach loop devices and mount them, which needs root")
	accessType = flag.String("access-type", "mount", "mount or block, for the volumes of TestSanity")
)

func TestSanity(t *testing.T) {
	args := operating("--list-volumes", "--get-volume", "--volume-health", "--zones")
	blocks := filepath.Join(t.TempDir(), "blocks")
	if *realDisks {
		args = append(args, "--real-dir="+blocks)
	}
	w := newWorld(t, args...)
	w.services = diskapi.Services{GroupSnapshots: true, Expansion: true}
	w.zone = "zone-1"
	if *realDisks {
		w.disks = blocks
	}
	n := w.node("sanity", 12)
	config := sanity.NewTestConfig()
	config.Address = "unix://" + filepath.Join(n.root, "plugins", disk.DefaultDriver, "csi.sock")
	config.ControllerAddress = "unix://" + filepath.Join(w.dir, "csi.sock")
	config.TargetPath, config.StagingPath = filepath.Join(w.dir, "target"), filepath.Join(w.dir, "staging")
	config.TestNodeVolumeAttachLimit, config.TestVolumeAccessType = true, *accessType
	config.TestVolumeSize, config.TestVolumeExpandSize = 64<<20, 128<<20
	sanity.Test(t, config)
}
