// SPDX-License-Identifier: Apache-2.0

package nodemounts

import (
	"io"
	"io/fs"
	"strings"
)

// Machine identifies a boot of a machine. Unreadable fields are empty.
type Machine struct {
	// BootID and SystemUUID are as in status.nodeInfo.
	BootID, SystemUUID string
}

// ReadMachine reads the machine's own files; bootID is the path of the boot's ID below root.
func ReadMachine(root fs.FS, bootID string) Machine {
	return Machine{
		BootID:     line(root, bootID),
		SystemUUID: line(root, "sys/class/dmi/id/product_uuid"),
	}
}

func line(tree fs.FS, name string) string {
	file, err := tree.Open(name)
	if err != nil {
		return ""
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxLine+1))
	if err != nil || len(text) > maxLine {
		return ""
	}
	return printable(strings.TrimSpace(string(text)))
}
