// SPDX-License-Identifier: Apache-2.0

package nodevolumes

import (
	"io"
	"io/fs"
	"strings"
	"time"
)

// Machine identifies a boot of a machine, and a start of its kubelet. Unreadable fields are empty.
type Machine struct {
	// BootID and SystemUUID are those of the Node's status.nodeInfo.
	BootID, SystemUUID string
	// KubeletStarted is when the kubelet made its socket for pod resources, which it
	// makes anew at each start (pkg/kubelet/server/server.go ListenAndServePodResources).
	KubeletStarted time.Time
}

// ReadMachine reads them from the kubelet's folder and the machine's own files; bootID is the path of
// the boot's ID, below root as all names of a file system.
func ReadMachine(kubelet, root fs.FS, bootID string) Machine {
	m := Machine{
		BootID:     line(root, bootID),
		SystemUUID: line(root, "sys/class/dmi/id/product_uuid"),
	}
	if info, err := fs.Stat(kubelet, "pod-resources/kubelet.sock"); err == nil {
		m.KubeletStarted = info.ModTime()
	}
	return m
}

// line reads the line of a small file; it is empty without a file.
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
