// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/proptest"
)

// newWorldBeside is a world in which the attach/detach controller works, too.
func newWorldBeside(data []byte) *randomWorld {
	w := newWorld(data)
	w.arb = rules.Arbiter{Cooperative: true}
	w.beside()
	w.more = []func(){
		func() { w.stock.work() }, func() { w.stock.work() }, func() { w.stock.work() }, w.stockRestarts,
	}
	w.excused = func(fault string) bool {
		// Exclusivity holds among tickets; the attach/detach controller asks for
		// none.
		return strings.Contains(fault, "while it is attached to") || strings.HasPrefix(fault, "I1:")
	}
	w.noRemake = true // a Node made again makes the attach/detach controller detach what is mounted
	return w
}

// stockRestarts stops the attach/detach controller, or starts it.
func (w *randomWorld) stockRestarts() {
	w.stock.down = !w.stock.down
	w.trace("stock: down=%v", w.stock.down)
	if !w.stock.down {
		w.stock.start()
	}
}

// TestWorldBeside plays random worlds beside the attach/detach controller: what
// is in use is not touched, nothing leaks, and everybody is served.
func TestWorldBeside(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		newWorldBeside(proptest.Bytes(t, 900)).play(t)
	})
}
