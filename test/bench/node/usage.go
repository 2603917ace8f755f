// SPDX-License-Identifier: Apache-2.0

package node

import (
	"github.com/moorage-dev/moorage/test/bench"
	"github.com/moorage-dev/moorage/test/bench/node/result"
)

func readMemory(pid int) (result.Memory, error) {
	m, err := bench.ProcessMemory(pid, "RssAnon", "RssFile", "VmRSS", "VmHWM")
	return result.Memory{AnonMiB: m["RssAnon"], FileMiB: m["RssFile"], ResidentMiB: m["VmRSS"], PeakMiB: m["VmHWM"]}, err
}
