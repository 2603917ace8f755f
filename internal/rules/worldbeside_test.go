// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/proptest"
)

func newWorldBeside(data []byte) *randomWorld {
	w := newWorld(data)
	w.arb = rules.Arbiter{Cooperative: true}
	w.beside()
	w.more = []func(){
		func() { w.stock.work() }, func() { w.stock.work() }, func() { w.stock.work() }, w.stockRestarts,
	}
	w.excused = func(fault string) bool {
		// Exclusivity holds among tickets; the attach/detach controller does not keep it.
		return strings.Contains(fault, "while it is attached to") || strings.HasPrefix(fault, "I1:")
	}
	w.noRemake = true // after a Node is made again, the attach/detach controller detaches mounted volumes
	return w
}

func (w *randomWorld) stockRestarts() {
	w.stock.down = !w.stock.down
	w.trace("stock: down=%v", w.stock.down)
	if !w.stock.down {
		w.stock.start()
	}
}

func TestWorldBeside(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		newWorldBeside(proptest.Bytes(t, 900)).play(t)
	})
}
