// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// AttacherEnv is the environment variable with the attacher, if the options name none.
const AttacherEnv = "MOORAGE_SANDBOX_ATTACHER"

// Anything else is the path of a csi-attacher binary.
const (
	StockAttacher   = "stock"
	MoorageAttacher = "moorage"
)

func (o Options) choice() string { return cmp.Or(o.Attacher, os.Getenv(AttacherEnv)) }

func (o Options) AttacherPath() (string, error) {
	path := o.choice()
	if path == "" || path == StockAttacher || path == MoorageAttacher {
		executable := o.Executable
		if executable == "" {
			var err error
			if executable, err = os.Executable(); err != nil {
				return "", fmt.Errorf("find the sandbox's own executable: %w", err)
			}
		}
		path = filepath.Join(filepath.Dir(executable), "csi-attacher")
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("csi-attacher is missing (%w): run `make build`, or name it with --attacher or %s", err, AttacherEnv)
	}
	return path, nil
}

func attacherComponent(s *site) component {
	if s.options.MoorageAttacher || s.options.ownAttacher {
		return moorageAttacher(s)
	}
	return stockAttacher(s)
}

func stockAttacher(s *site) component {
	c := component{name: Attacher, binary: s.options.Attacher, restart: true, args: attacherArgs(s), identity: attacherIdentity()}
	if s.options.Mode == UpstreamTuned || s.options.TuneAttacher {
		c.args = append(c.args, "--kube-api-qps="+tunedQPS, "--kube-api-burst="+tunedBurst, "--worker-threads="+tunedWorkers)
	}
	return c
}

func moorageAttacher(s *site) component {
	return component{
		name: Attacher, command: "moorage-attacher", binary: s.options.OwnAttacher,
		restart: true, args: attacherArgs(s), identity: attacherIdentity(),
	}
}

func attacherArgs(s *site) []string {
	args := []string{"--kubeconfig=" + s.kubeconfig(Attacher), "--csi-address=" + s.csiSocket, "--v=4"}
	if s.options.ListVolumes {
		args = append(args, "--reconcile-sync=1s")
	}
	return args
}

func attacherIdentity() *Identity { return new(serviceAccount(driverNamespace, "csi-attacher")) }

// UseAttacher kills the attacher in the middle of its work, and starts the other attacher.
func (c *Cluster) UseAttacher(ctx context.Context, moorage bool) error {
	if err := c.Kill(ctx, Attacher); err != nil {
		return err
	}
	next := stockAttacher(c.site)
	if moorage {
		next = moorageAttacher(c.site)
	}
	if err := c.procs.Replace(next.spec(c.site)); err != nil {
		return err
	}
	return c.StartAgain(Attacher)
}
