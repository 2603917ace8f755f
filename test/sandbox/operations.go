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

const (
	SnapshotController = "snapshot-controller"
	Snapshotter        = "csi-snapshotter"
	Provisioner        = "csi-provisioner"
	Resizer            = "csi-resizer"
)

const snapshotDefinitions = "external-snapshotter"

// Operations is what the driver does besides attaching. The zero value does nothing else, and has the
// sandbox's own provisioner.
type Operations struct {
	// On has the driver make snapshots, group snapshots, clones, restores and expansions, by the upstream
	// sidecars.
	On bool `json:"on"`
	// AttachFor lists operations (snapshot, clone, expansion) that need the volume attached, and fail when
	// it is detached in the middle. DetachFor lists operations that need it detached.
	AttachFor     string        `json:"attachFor,omitempty"`
	DetachFor     string        `json:"detachFor,omitempty"`
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

func nodeOperationArgs(o Operations) []string {
	if !o.On {
		return nil
	}
	return []string{
		"--group-snapshots", "--expand",
		fmt.Sprintf("--expand-offline=%t", strings.Contains(o.DetachFor, string(diskapi.ExpandVolume))),
	}
}

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

const operationRetry = "5s"

// Each sidecar exits when the driver goes away, and counts on a restart. By default it makes 5 requests a
// second, and waits up to five minutes.
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
