// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"io"
	"os"
	"strings"
)

const tailBytes = 64 << 10

func tail(path string, lines int) string {
	f, err := os.Open(path)
	if err != nil {
		return "no log: " + err.Error()
	}
	defer f.Close()
	if size, err := f.Seek(0, io.SeekEnd); err == nil {
		_, err = f.Seek(max(0, size-tailBytes), io.SeekStart)
		if err != nil {
			return "no log: " + err.Error()
		}
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return "no log: " + err.Error()
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
