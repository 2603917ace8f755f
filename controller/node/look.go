// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"os"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/nodemounts"
)

type sight struct {
	facts   nodemounts.Facts
	machine nodemounts.Machine
}

// look reads the node. A folder or table that can't be opened is unknown, with all content. Everything is
// unknown if the folder lacks this process's pod: then it is another kubelet's. pod is that pod's UID, or
// empty. before are the file systems found alive before.
func look(c Config, pod types.UID, before []nodemounts.Alive) sight {
	root, err := os.OpenRoot(c.KubeletRoot) // links lead nowhere else
	if err != nil {
		return blind(c, err, before)
	}
	defer root.Close()
	if pod != "" {
		if _, err := root.Stat(path.Join("pods", string(pod))); err != nil {
			return blind(c, fmt.Errorf("%s is not this kubelet's folder, which has one of moorage-node's own pod (is node.kubeletRoot right?): %w", c.KubeletRoot, err), before)
		}
	}
	table, err := os.Open(c.Mounts)
	if err != nil {
		return blind(c, err, before)
	}
	defer table.Close()
	return sight{
		facts:   nodemounts.Read(nodemounts.Tree(root), nodemounts.ReadMounts(table, c.KubeletRoot), nodemounts.Kernel{Sys: os.DirFS(c.Sys), Before: before}),
		machine: c.machine(),
	}
}

func blind(c Config, err error, before []nodemounts.Alive) sight {
	return sight{
		facts:   nodemounts.Facts{Unknown: []string{cut(fmt.Sprintf("nothing can be read: %v", err))}, Alive: before},
		machine: c.machine(),
	}
}

// bootID is empty if it can't be read.
func (c Config) bootID() string { return c.machine().BootID }

func (c Config) machine() nodemounts.Machine {
	return nodemounts.ReadMachine(os.DirFS("/"), strings.TrimPrefix(c.BootID, "/"))
}

func cut(why string) string {
	letters := []rune(why)
	return string(letters[:min(len(letters), v1alpha1.MaxNodeReasonRunes)])
}
