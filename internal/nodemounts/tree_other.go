// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package nodemounts

import (
	"errors"
	"io/fs"
	"os"
)

const onlyFolders, atOnce = 0, 0

// entriesOf needs Linux, as a kubelet with CSI volumes of this layout does.
func entriesOf(*os.File, int) ([]entry, error) {
	return nil, errors.New("moorage-node runs on Linux only")
}

// inode is the number of a file's inode; 0: it is not known.
func inode(fs.FileInfo) int64 { return 0 }
