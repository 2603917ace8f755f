// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"testing"
	"time"
)

func TestPastHistories(t *testing.T) {
	for _, test := range []struct {
		bug  string
		play func(w *world)
	}{
		{"the next attachment of the name takes the node's new ID for the place of the volume", func(w *world) {
			w.attach("c")
			w.create("b", 0)
			w.strip("va-c")
			w.create("c", 0)
			w.deliver()
			w.ids["c"] = "id-c2"
		}},
		{"an own write that comes to light late is taken for a person's", func(w *world) {
			w.create("b", 2)
			w.step(outcomeSuccess) // stamped with id-b
			w.ids["b"] = "id-b2"
			w.deliver()
			w.begin() // stamps it with id-b2
			w.ids["b"] = "id-b"
			w.deliver()
			w.finish(0, outcomeLost)
			w.ids["b"] = "id-b2"
			w.now = w.now.Add(time.Second)
			w.begin()
			w.finish(0, outcomeUnavailable)
		}},
		{"published at another ID than the object carries, and the process dies", func(w *world) {
			w.create("a", 0)
			w.ids["a"] = "id-a2"
			w.step(outcomeSuccess)
			w.ids["a"] = "id-a"
			w.deliver()
			w.begin()
			w.ids["a"] = "id-a2"
			w.deliver()
			w.finish(0, outcomeLost)
			w.now = w.now.Add(time.Second)
			w.begin()
			w.delete(w.objects["va-a"])
			w.restart()
		}},
		{"somebody else's finalizer hides where the volume was left", func(w *world) {
			w.create("b", 0)
			w.step(outcomeSuccess)
			w.begin() // publishes
			w.strip("va-b")
			w.create("a", 0)
			w.create("b", 0)
			w.deliver()
			w.finish(0, outcomeSuccess)
			w.ids["b"] = "id-b2"
			o := w.objects["va-b"]
			o.stamped, o.nodeID = true, "id-b2"
		}},
		{"a live migration that is over lets the volume back to where it came from, beside where it is", func(w *world) {
			w.attach("a")
			w.migrate(w.objects["va-a"], "b")
			w.moved()
			w.create("a", 0)
		}},
	} {
		t.Run(test.bug, func(t *testing.T) {
			w := newWorld(t, true, false)
			test.play(w)
			w.calm()
		})
	}
}

func (w *world) step(outcome int) {
	w.deliver()
	w.begin()
	w.finish(0, outcome)
}

func (w *world) attach(node string) {
	w.create(node, 0)
	for !w.objects["va-"+node].attached {
		w.step(outcomeSuccess)
	}
}

func (w *world) moved() {
	for !w.objects["va-b"].attached {
		w.step(outcomeSuccess)
	}
	w.delete(w.objects["va-a"])
	for w.objects["va-a"] != nil {
		w.step(outcomeSuccess)
	}
}

func (w *world) strip(name string) {
	o := w.objects[name]
	w.delete(o)
	o.stamped, w.leaks = false, true
	w.collect(o)
	w.deliver()
}
