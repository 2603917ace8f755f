// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"os"
	"time"
)

// version tells whether files changed. A Secret's volume changes by swapping a symbolic link, and stat
// follows it.
type version struct {
	times [2]time.Time
	sizes [2]int64
}

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
