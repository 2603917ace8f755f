// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"slices"
	"testing"

	"github.com/moorage-dev/moorage/controller/attacher/decide"
)

// Namespaces take turns, and so do the volumes of each, in the order in which they began to
// wait; whoever has had a turn and waits again is behind those of its namespace, and its
// namespace behind the others.
func TestLine(t *testing.T) {
	var l line
	if id, ok := l.next(); ok {
		t.Errorf("nobody waits, and it is the turn of %s", id)
	}
	for _, id := range []decide.VolumeID{"a1", "a2", "b1", "a1", "a3", "c1", "b2"} {
		l.join(id, string(id[0]))
	}
	l.join("a2", "c") // it waits already, whosever it is
	var got []decide.VolumeID
	for l.len() > 0 {
		id, ok := l.next()
		if !ok {
			t.Fatalf("it is nobody's turn after %q", got)
		}
		if got = append(got, id); id == "a1" && len(got) < 9 || id == "c1" && len(got) < 4 {
			l.join(id, string(id[0]))
		}
	}
	want := []decide.VolumeID{"a1", "b1", "c1", "a2", "b2", "c1", "a3", "a1", "a1"}
	if !slices.Equal(got, want) {
		t.Errorf("they have their turns in the order %q, want %q", got, want)
	}
	if len(l.rows)+len(l.in)+len(l.namespaces) > 0 {
		t.Errorf("nobody waits, and kept is %+v", l)
	}
}
