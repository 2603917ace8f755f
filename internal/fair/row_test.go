// SPDX-License-Identifier: Apache-2.0

package fair

import (
	"slices"
	"strings"
	"testing"
)

func tenantOf(key string) string {
	tenant, _, _ := strings.Cut(key, "/")
	return tenant
}

func TestRow(t *testing.T) {
	for name, test := range map[string]struct {
		remove []string
		want   []string
	}{
		"none":                {nil, []string{"a/0", "b/0", "c/0", "a/1", "a/2"}},
		"the first":           {[]string{"a/0"}, []string{"a/1", "b/0", "c/0", "a/2"}},
		"one in the middle":   {[]string{"a/1"}, []string{"a/0", "b/0", "c/0", "a/2"}},
		"all of a tenant":     {[]string{"a/2", "a/0", "a/1"}, []string{"b/0", "c/0"}},
		"one that is unknown": {[]string{"d/0", "b/0", "b/0"}, []string{"a/0", "c/0", "a/1", "a/2"}},
	} {
		t.Run(name, func(t *testing.T) {
			var row Row[string]
			for _, key := range []string{"a/0", "a/1", "b/0", "a/2", "c/0", "a/1"} {
				row.Push(tenantOf(key), key)
			}
			for _, key := range test.remove {
				row.Remove(key)
			}
			if row.Len() != len(test.want) || row.Has("a/1") != slices.Contains(test.want, "a/1") {
				t.Errorf("%d keys wait, want %d", row.Len(), len(test.want))
			}
			var got []string
			for key, ok := row.Pop(); ok; key, ok = row.Pop() {
				got = append(got, key)
			}
			if !slices.Equal(got, test.want) || row.Len() != 0 || row.tenants.Len() != 0 || len(row.rows) != 0 {
				t.Errorf("popped %q, want %q; left: %+v", got, test.want, row)
			}
			row.Push("a", "a/9") // it can be used again
			if key, ok := row.Pop(); key != "a/9" || !ok {
				t.Errorf("popped %q", key)
			}
		})
	}
}

// A waiting key keeps its place for any tenant.
func TestWhoWaitsAgainIsBehindOthers(t *testing.T) {
	var row Row[string]
	if key, ok := row.Pop(); ok {
		t.Errorf("nobody waits, and it is the turn of %s", key)
	}
	for _, key := range []string{"a1", "a2", "b1", "a1", "a3", "c1", "b2"} {
		row.Push(key[:1], key)
	}
	row.Push("c", "a2")
	var got []string
	for row.Len() > 0 {
		key, ok := row.Pop()
		if !ok {
			t.Fatalf("it is nobody's turn after %q", got)
		}
		if got = append(got, key); key == "a1" && len(got) < 9 || key == "c1" && len(got) < 4 {
			row.Push(key[:1], key)
		}
	}
	want := []string{"a1", "b1", "c1", "a2", "b2", "c1", "a3", "a1", "a1"}
	if !slices.Equal(got, want) {
		t.Errorf("they have their turns in the order %q, want %q", got, want)
	}
	if len(row.rows)+len(row.spots)+row.tenants.Len() > 0 {
		t.Errorf("nobody waits, and kept is %+v", row)
	}
}
