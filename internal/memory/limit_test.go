// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"testing"
	"testing/fstest"
)

func TestMemoryLimit(t *testing.T) {
	const v2, v1 = "sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes"
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
		ok    bool
	}{
		"no cgroups":   {nil, 0, false},
		"v2":           {map[string]string{v2: "1073741824\n"}, 1 << 30, true},
		"v2, no limit": {map[string]string{v2: "max\n"}, 0, false},
		"v1":           {map[string]string{v1: "536870912\n"}, 1 << 29, true},
		"v1, no limit": {map[string]string{v1: "9223372036854771712\n"}, 0, false},
		"both":         {map[string]string{v2: "max", v1: "536870912"}, 0, false},
		"nonsense":     {map[string]string{v2: "-5"}, 0, false},
	} {
		root := fstest.MapFS{}
		for file, text := range c.files {
			root[file] = &fstest.MapFile{Data: []byte(text)}
		}
		if got, ok := memoryLimit(root); ok != c.ok || ok && got != c.want {
			t.Errorf("%s: %d, %v; want %d, %v", name, got, ok, c.want, c.ok)
		}
	}
}
