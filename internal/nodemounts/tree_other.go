// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package nodemounts

import (
	"errors"
	"io/fs"
	"os"
)

const onlyFolders, atOnce = 0, 0

func entriesOf(*os.File, int) ([]entry, error) {
	return nil, errors.New("moorage-node runs on Linux only")
}

func inode(fs.FileInfo) int64 { return 0 }
