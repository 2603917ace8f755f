// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
	"github.com/moorage-dev/moorage/test/sandbox/internal/supervise"
)

const Everyone = "all"

func (c *Cluster) Processes() []supervise.Status { return c.procs.Status() }

func (c *Cluster) Kill(ctx context.Context, name string) error {
	c.touch()
	return c.procs.Kill(ctx, name)
}

// Terminate sends SIGTERM, and kills the component after grace.
func (c *Cluster) Terminate(ctx context.Context, name string, grace time.Duration) error {
	c.touch()
	return c.procs.Terminate(ctx, name, grace)
}

// PowerOff switches a node's machine off. The attachments stay. A real node loses all unwritten data, and
// its devices.
func (c *Cluster) PowerOff(ctx context.Context, node string) error {
	if err := c.isNode(node); err != nil {
		return err
	}
	if c.options.Real {
		c.touch()
		if err := c.dropPower(ctx, node); err != nil {
			return err
		}
	} else if err := c.Kill(ctx, node); err != nil {
		return err
	}
	if err := c.Disk().Fence(ctx, diskapi.NodeID(node)); err != nil {
		return err
	}
	if c.options.Real {
		if err := c.awaitNoDevices(ctx, node); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.off == nil {
		c.off = map[string]bool{}
	}
	c.off[node] = true
	return nil
}

// PowerOn boots a node with another boot ID.
func (c *Cluster) PowerOn(ctx context.Context, node string) error {
	if !c.isOff(node) {
		return fmt.Errorf("%s is not switched off", node)
	}
	if err := c.Disk().Unfence(ctx, diskapi.NodeID(node)); err != nil {
		return err
	}
	if err := os.Remove(c.site.bootFile(node)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the boot of %s: %w", node, err)
	}
	if c.options.Real {
		if err := c.restorePower(node); err != nil {
			return err
		}
	}
	c.mu.Lock()
	delete(c.off, node)
	c.mu.Unlock()
	return c.StartAgain(node)
}

func (c *Cluster) isNode(name string) error {
	if nodes := c.nodeNames(); !slices.Contains(nodes, name) {
		return fmt.Errorf("%s is not a node: there are %v", name, nodes)
	}
	return nil
}

func (c *Cluster) isOff(node string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.off[node]
}

// StartAgain uses the same command line. A node that was switched off needs PowerOn.
func (c *Cluster) StartAgain(name string) error {
	if c.isOff(name) {
		return fmt.Errorf("%s is switched off: switch it on", name)
	}
	c.touch()
	return c.procs.Start(name)
}

func (c *Cluster) Upgrade(ctx context.Context, name string) error {
	i := slices.IndexFunc(c.site.components(), func(p component) bool { return p.name == name })
	if i < 0 {
		return fmt.Errorf("there is no component %s to upgrade", name)
	}
	if err := c.Kill(ctx, name); err != nil {
		return err
	}
	spec := c.site.components()[i].spec(c.site)
	spec.Path = c.site.options.Executable
	if err := c.procs.Replace(spec); err != nil {
		return err
	}
	return c.StartAgain(name)
}

// StandBy starts a second process of moorage-scheduler or moorage-controller, which waits for the Lease.
func (c *Cluster) StandBy(name string) (string, error) {
	all := c.site.components()
	i := slices.IndexFunc(all, func(p component) bool { return p.name == name })
	if i < 0 || name != MoorageScheduler && name != MoorageController {
		return "", fmt.Errorf("%s does not run here, or has no Lease that a second process could wait for", name)
	}
	c.touch()
	second := all[i]
	second.name, second.command = name+"-2", name
	for i, arg := range second.args {
		if strings.HasPrefix(arg, "--listen=") {
			second.args = slices.Clone(second.args)
			second.args[i] = "--listen=127.0.0.1:0"
		}
	}
	return second.name, c.procs.Launch(second.spec(c.site))
}

// AttachDetach restarts kube-controller-manager with its attach/detach controller on or off.
func (c *Cluster) AttachDetach(ctx context.Context, on bool) error {
	if err := c.Kill(ctx, ControllerManager); err != nil {
		return err
	}
	manager := controllerManagerComponent(c.site)
	manager.args = slices.DeleteFunc(manager.args, func(arg string) bool { return strings.HasPrefix(arg, "--controllers=") })
	if !on {
		manager.args = append(manager.args, withoutAttachDetach)
	}
	if err := c.procs.Change(ControllerManager, manager.spec(c.site).Args); err != nil {
		return err
	}
	return c.StartAgain(ControllerManager)
}

func (c *Cluster) Pause(name string) error {
	c.touch()
	return c.procs.Pause(name)
}

func (c *Cluster) Resume(name string) error { return c.procs.Resume(name) }

// Cut drops a component's traffic with the API server, both ways, without closing connections.
func (c *Cluster) Cut(name string) error {
	c.touch()
	return c.eachLink(name, func(component string) { c.site.links[component].Cut() })
}

// Restore ends a Cut: delayed packets are delivered.
func (c *Cluster) Restore(name string) error {
	return c.eachLink(name, func(component string) { c.site.links[component].Restore() })
}

func (c *Cluster) eachLink(name string, do func(component string)) error {
	names := slices.Sorted(maps.Keys(c.site.links))
	if name != Everyone {
		if !slices.Contains(names, name) {
			return fmt.Errorf("%s has no connection to the API server: use all, or one of %v", name, names)
		}
		names = []string{name}
	}
	for _, n := range names {
		do(n)
	}
	return nil
}

func (c *Cluster) Components() []string {
	var names []string
	for _, s := range c.procs.Status() {
		names = append(names, s.Name)
	}
	return names
}

func (c *Cluster) touch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.touched = true
}

// A Touched cluster is not reused.
func (c *Cluster) Touched() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.touched
}

func (c *Cluster) Heal(ctx context.Context) error {
	errs := []error{c.Restore(Everyone)}
	for _, node := range c.nodeNames() {
		if c.isOff(node) {
			errs = append(errs, c.PowerOn(ctx, node))
		}
	}
	for _, s := range c.procs.Status() {
		switch {
		case c.isSecond(s.Name):
			errs = append(errs, c.procs.Kill(ctx, s.Name))
		case s.State == supervise.Paused:
			errs = append(errs, c.Resume(s.Name))
		case s.State == supervise.Running:
		default:
			errs = append(errs, c.StartAgain(s.Name))
		}
	}
	return errors.Join(errs...)
}
