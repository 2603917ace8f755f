// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"os"

	"github.com/moorage-dev/moorage/internal/nodevolumes"
)

// sight is what one look found.
type sight struct {
	facts   nodevolumes.Facts
	machine nodevolumes.Machine
}

// look reads the node. A folder or table that can't be opened is unknown, as what is in
// it would be.
func look(c Config) sight {
	root, err := os.OpenRoot(c.KubeletRoot) // links lead nowhere else
	if err != nil {
		return blind(err)
	}
	defer root.Close()
	table, err := os.Open(c.Mounts)
	if err != nil {
		return blind(err)
	}
	defer table.Close()
	return sight{
		facts:   nodevolumes.Read(root.FS(), nodevolumes.ReadMounts(table, c.KubeletRoot)),
		machine: nodevolumes.ReadMachine(root.FS(), os.DirFS("/proc"), os.DirFS("/sys")),
	}
}

func blind(err error) sight {
	const nowhere = os.DevNull // no folder
	return sight{
		facts:   nodevolumes.Facts{Unknown: []string{fmt.Sprintf("nothing can be read: %v", err)}},
		machine: nodevolumes.ReadMachine(os.DirFS(nowhere), os.DirFS("/proc"), os.DirFS("/sys")),
	}
}
