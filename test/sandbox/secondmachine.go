// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func SecondMachine(node string) string { return node + "-b" }

// Replace starts another machine under a node's name. Cut off the first machine before: both would write to
// one Node.
func (c *Cluster) Replace(node string) error {
	if err := c.isNode(node); err != nil {
		return err
	}
	if !c.options.NamedMachines {
		return errors.New("the Nodes do not name their machines here: the shape has no NamedMachines")
	}
	if c.site.links[node].Whole() {
		return fmt.Errorf("%s reaches the API server: cut it off before another machine has its name", node)
	}
	second := nodeComponent(c.site, SecondMachine(node))
	if err := os.MkdirAll(filepath.Join(c.site.nodes, second.name, "plugins_registry"), 0o755); err != nil {
		return fmt.Errorf("folder of a second machine: %w", err)
	}
	second.args = slices.DeleteFunc(second.args, func(arg string) bool { return strings.HasPrefix(arg, "--name=") })
	second.args = append(second.args, "--name="+node, "--machine="+second.name)
	c.touch()
	c.mu.Lock()
	if c.second == nil {
		c.second = map[string]bool{}
	}
	c.second[second.name] = true
	c.mu.Unlock()
	return c.procs.Launch(second.spec(c.site))
}

func (c *Cluster) Withdraw(ctx context.Context, node string) error {
	name := SecondMachine(node)
	if !c.isSecond(name) {
		return fmt.Errorf("no second machine has the name %s", node)
	}
	if err := c.procs.Kill(ctx, name); err != nil {
		return err
	}
	return c.Disk().Fence(ctx, diskapi.NodeID(name))
}

func (c *Cluster) isSecond(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.second[name]
}

func (s *site) linkSeconds(tokens map[string]string) error {
	for i := range s.options.Nodes {
		if !s.options.NamedMachines {
			break
		}
		name := SecondMachine(NodeName(i + 1))
		if err := s.linkAs(name, tokens[NodeName(i+1)]); err != nil {
			return err
		}
	}
	return nil
}
