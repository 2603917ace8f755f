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

// NodeName is the name of the i-th node, counted from 1.
func NodeName(i int) string { return fmt.Sprintf("worker-%d", i) }

// component is one process of a cluster, as data.
type component struct {
	// name of the process.
	name string
	// command is the multi-call binary's command, the name if empty.
	command string
	// binary is set for a process that is not part of the multi-call binary.
	binary string
	// identity is how it talks to the API server; nil means it does not.
	identity *Identity
	// args are its flags. The kubeconfig that belongs to identity is where
	// site.kubeconfig says.
	args []string
	// node is set for a process that acts for a Node, by a token that is made once the
	// Node is there.
	node string
	// restart says that it is started again when it exits, as a kubelet would
	// do with the container that it is in a real cluster.
	restart bool
	// machine is the socket of the machine that the process joins; empty: none.
	machine string
	// cloneflags make namespaces for the process at its start.
	cloneflags uintptr
	// env is added to the environment.
	env []string
}

// commandName is the multi-call binary's command for the component.
func (c component) commandName() string { return cmp.Or(c.command, c.name) }

// spec is the process that a component becomes.
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

// executable is the multi-call binary of a command.
func (o Options) executable(command string) string {
	switch command {
	case APIServer, ControllerManager, Scheduler:
		return cmp.Or(o.ControlPlane, o.Executable)
	case nodeCommand:
		return cmp.Or(o.Kubelets, o.Executable)
	}
	return o.Executable
}

// nodeCommand is the command that runs a node.
const nodeCommand = "node"

// ComponentCommand is the hidden command of the multi-call binary that runs one component: its first
// argument names the component, the others are the component's own.
const ComponentCommand = "component"

// logPath is where a component's output goes.
func (s *site) logPath(name string) string { return filepath.Join(s.logs, name+".log") }

// checkComponents reports a command that the mode needs and the multi-call
// binary doesn't have.
func (s *site) checkComponents() error {
	for _, c := range s.components() {
		if c.binary == "" && s.options.Components != nil && !slices.Contains(s.options.Components, c.commandName()) {
			return fmt.Errorf("mode %s needs %s, which is not part of this binary: use another mode", s.options.Mode, c.commandName())
		}
	}
	return nil
}

// identities lists who needs a token: every component that talks to the API
// server, by component name.
func identities(components []component) map[string]Identity {
	out := map[string]Identity{}
	for _, c := range components {
		if c.identity != nil {
			out[c.name] = *c.identity
		}
	}
	return out
}
