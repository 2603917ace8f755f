// SPDX-License-Identifier: Apache-2.0

package nodevolumes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
)

// RemoveStaged removes the kubelet's records of an unstaged volume with a file system, as the kubelet
// does (csi_mounter.go:583, removeMountDir): the folder of its mount, which must be empty,
// vol_data.json, and the folder of both. A missing file is no error; a mount is one.
func RemoveStaged(kubelet *os.Root, mounts Mounts, driver, handle string) error {
	mount := StagingPath(driver, handle)
	if at := mounts.At(mount); at != No {
		return fmt.Errorf("it is not known that nothing is mounted at %s (%s)", path.Base(mount), at)
	}
	folder := path.Dir(mount)
	for _, name := range []string{mount, path.Join(folder, recordName), folder} {
		if err := kubelet.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			var cause *fs.PathError
			if errors.As(err, &cause) {
				err = cause.Err // the path is long, and the caller has it
			}
			return fmt.Errorf("%s can't be removed: %w", path.Base(name), err)
		}
	}
	return nil
}
