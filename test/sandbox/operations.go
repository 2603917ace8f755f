// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// The components that ask a driver for operations.
const (
	SnapshotController = "snapshot-controller"
	Snapshotter        = "csi-snapshotter"
	Provisioner        = "csi-provisioner"
	Resizer            = "csi-resizer"
)

// snapshotDefinitions is the folder, beside the executable, of the definitions of snapshots, as
// external-snapshotter's module has them.
const snapshotDefinitions = "external-snapshotter"

// Operations is what the driver does with a volume besides attaching it, and how. The zero value
// is a driver that does nothing else, with the sandbox's own provisioner.
type Operations struct {
	// On has the driver make snapshots, group snapshots, clones, and volumes from snapshots, and
	// expand volumes. external-provisioner takes the place of the sandbox's own; beside it run
	// external-snapshotter with its controller, and external-resizer.
	On bool `json:"on"`
	// AttachFor lists operations, with commas, that the driver refuses with FAILED_PRECONDITION unless
	// the volume is attached, and that come to nothing when it is detached in the middle: snapshot,
	// clone, expansion. DetachFor lists operations that it refuses unless the volume is attached
	// nowhere.
	AttachFor string `json:"attachFor,omitempty"`
	DetachFor string `json:"detachFor,omitempty"`
	// CopyLatency is how long a snapshot, a clone or a restore takes, ExpandLatency how long an
	// expansion takes at the storage.
	CopyLatency   time.Duration `json:"copyLatency,omitempty"`
	ExpandLatency time.Duration `json:"expandLatency,omitempty"`
	// CopyInBackground has a snapshot answered at once, and not ready until it is copied.
	CopyInBackground bool `json:"copyInBackground,omitempty"`
}

func (o Operations) validate() error {
	if !o.On {
		if o != (Operations{}) {
			return errors.New("how the driver does operations is said without having it do them: set Operations.On")
		}
		return nil
	}
	if o.CopyLatency < 0 || o.ExpandLatency < 0 {
		return errors.New("latencies can't be negative")
	}
	attach, err := diskapi.ParseOperations(o.AttachFor)
	if err != nil {
		return fmt.Errorf("operations that need the volume attached: %w", err)
	}
	if _, err := diskapi.ParseOperations(o.DetachFor); err != nil {
		return fmt.Errorf("operations that need the volume detached: %w", err)
	}
	for _, a := range attach {
		if strings.Contains(o.DetachFor, string(a)) {
			return fmt.Errorf("%s can't need the volume both attached and detached", a)
		}
	}
	return nil
}

// completeOperations finds the sidecars and the definitions.
func (o *Options) completeOperations() error {
	if !o.Operations.On {
		return nil
	}
	beside := filepath.Dir(o.Executable)
	o.Sidecars = cmp.Or(o.Sidecars, beside)
	o.SnapshotDefinitions = cmp.Or(o.SnapshotDefinitions, filepath.Join(beside, snapshotDefinitions))
	for _, name := range []string{SnapshotController, Snapshotter, Provisioner, Resizer} {
		if _, err := os.Stat(filepath.Join(o.Sidecars, name)); err != nil {
			return fmt.Errorf("%s is missing (%w): run `make build`", name, err)
		}
	}
	return nil
}

// nodeOperationArgs are a node's flags.
func nodeOperationArgs(o Operations) []string {
	if !o.On {
		return nil
	}
	return []string{
		"--group-snapshots", "--expand",
		fmt.Sprintf("--expand-offline=%t", strings.Contains(o.DetachFor, string(diskapi.ExpandVolume))),
	}
}

// operationArgs are the disk service's flags.
func operationArgs(o Operations) []string {
	if !o.On {
		return nil
	}
	return []string{
		"--snapshots", "--group-snapshots", "--clones", "--expansion",
		"--attach-for=" + o.AttachFor,
		"--detach-for=" + o.DetachFor,
		"--copy-latency=" + o.CopyLatency.String(),
		"--expand-latency=" + o.ExpandLatency.String(),
		fmt.Sprintf("--copy-in-background=%t", o.CopyInBackground),
	}
}

// operationRetry is how long a sidecar waits at most before it asks the driver again.
const operationRetry = "5s"

// operationComponents are the sidecars of operations. Each exits when the driver goes away and counts
// on being started again. None needs to be elected, since each is alone. Their requests are not
// limited, and they try again within seconds: by default a sidecar makes 5 requests a second, and waits
// up to five minutes.
func operationComponents(s *site) []component {
	if !s.options.Operations.On {
		return nil
	}
	sidecar := func(name string, args ...string) component {
		return component{
			name: name, binary: filepath.Join(s.options.Sidecars, name), restart: true,
			identity: new(serviceAccount(driverNamespace, name)),
			args: append([]string{
				"--kubeconfig=" + s.kubeconfig(name), "--v=4", "--kube-api-qps=" + tunedQPS, "--kube-api-burst=" + tunedBurst,
				"--retry-interval-max=" + operationRetry,
			}, args...),
		}
	}
	csi := "--csi-address=" + s.csiSocket
	return []component{
		sidecar(SnapshotController),
		sidecar(Snapshotter, csi),
		sidecar(Provisioner, csi, "--default-fstype=ext4"),
		sidecar(Resizer, csi),
	}
}
