// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"os"
	"time"
)

// version tells whether a pair of files changed; one file is a pair with itself.
// A Secret's volume changes by swapping a symbolic link, which stat follows.
type version struct {
	times [2]time.Time
	sizes [2]int64
}

// versionOf looks at both files.
func versionOf(first, second string) (version, error) {
	var v version
	for i, file := range []string{first, second} {
		info, err := os.Stat(file)
		if err != nil {
			return version{}, err
		}
		v.times[i], v.sizes[i] = info.ModTime(), info.Size()
	}
	return v, nil
}
