// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/moorage-dev/moorage/test/sandbox/internal/supervise"
)

// Component names, as `fault` and Cluster.Kill take them. Nodes are components
// too, named by NodeName.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Attacher          = "csi-attacher"
	DiskService       = "disk-service"
	MoorageController = "moorage-controller"
	MoorageScheduler  = "moorage-scheduler"
	MoorageWebhook    = "moorage-webhook"
)

// NodeName counts from 1.
func NodeName(i int) string { return fmt.Sprintf("worker-%d", i) }

type component struct {
	name string
	// command is the multi-call binary's command; the name if empty.
	command  string
	binary   string
	identity *Identity
	args     []string
	node     string
	// It is started again when it exits, like a container.
	restart bool
	// machine is the socket of the machine that the process joins; empty: none.
	machine    string
	cloneflags uintptr
	env        []string
}

func (c component) commandName() string { return cmp.Or(c.command, c.name) }

func (c component) spec(s *site) supervise.Spec {
	path, args := c.binary, c.args
	if path == "" {
		path, args = s.options.executable(c.commandName()), slices.Concat([]string{ComponentCommand, c.commandName()}, c.args)
	}
	if c.machine != "" {
		path, args = s.options.Executable, slices.Concat([]string{ComponentCommand, "inside", "--socket=" + c.machine, path}, args)
	}
	return supervise.Spec{
		Name: c.name, Path: path, Args: args, Dir: s.folder.path,
		Env:     append([]string{"TMPDIR=" + s.tmp, "KUBECONFIG="}, c.env...),
		LogPath: s.logPath(c.name),
		Restart: c.restart, Cloneflags: c.cloneflags,
	}
}

func (o Options) executable(command string) string {
	switch command {
	case APIServer, ControllerManager, Scheduler:
		return cmp.Or(o.ControlPlane, o.Executable)
	case nodeCommand:
		return cmp.Or(o.Kubelets, o.Executable)
	}
	return o.Executable
}

const nodeCommand = "node"

// ComponentCommand is the hidden command of the multi-call binary: the first argument names the component,
// the others are its own.
const ComponentCommand = "component"

func (s *site) logPath(name string) string { return filepath.Join(s.logs, name+".log") }

func (s *site) checkComponents() error {
	for _, c := range s.components() {
		if c.binary == "" && s.options.Components != nil && !slices.Contains(s.options.Components, c.commandName()) {
			return fmt.Errorf("mode %s needs %s, which is not part of this binary: use another mode", s.options.Mode, c.commandName())
		}
	}
	return nil
}

func identities(components []component) map[string]Identity {
	out := map[string]Identity{}
	for _, c := range components {
		if c.identity != nil {
			out[c.name] = *c.identity
		}
	}
	return out
}
