// SPDX-License-Identifier: Apache-2.0

package command

import "testing"

// A name is suggested where a letter or two are wrong, and not where it names something else.
func TestNearest(t *testing.T) {
	for _, c := range []struct {
		name  string
		known []string
		want  string
	}{
		{"pdo", []string{"pod", "po", "job"}, "pod"},
		{"deploymnt", []string{"deployment", "daemonset"}, "deployment"},
		{"no-confgmap", []string{"no-secret", "no-configmap"}, "no-configmap"},
		{"wrker-1", []string{"worker-1"}, "worker-1"},
		{"shpo", []string{"bank", "shop"}, "shop"},
		{"post", []string{"postgres-0"}, "postgres-0"},
		{"db-0", []string{"db-1", "db-10"}, ""},
		{"worker-77", []string{"worker-2"}, ""},
		{"worker-1", []string{"worker-11"}, ""},
		{"data", []string{"late", "meta"}, ""},
		{"bd", []string{"db"}, ""},
		{"nobody", []string{"nginx"}, ""},
		{"", []string{"a"}, ""},
	} {
		if got := Nearest(c.name, c.known); got != c.want {
			t.Errorf("of %v %q is taken for %q, want %q", c.known, c.name, got, c.want)
		}
	}
}
