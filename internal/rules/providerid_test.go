// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"slices"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

func (s *script) made(provider, line string) {
	s.lag = true
	a := parse(line)
	s.node(a)
	n, _ := s.Node(ledger.NodeName(a.word(1)))
	n.ProviderID = provider
	s.put(n)
	first := slices.IndexFunc(s.watch, func(c world.Change) bool { return c.Kind == world.Nodes })
	s.watch = slices.Delete(s.watch, first, first+1) // the Node before it had a providerID
	s.lag = false
	s.flush()
}

// A volume that left a replaced machine is not in doubt at the next of that name.
func TestReplacedMachineWithProviderID(t *testing.T) {
	for name, test := range map[string]struct {
		how   []string
		lines []string
	}{
		"taken by time": {[]string{"by-name"}, []string{"advance 7m", "run"}},
		"a person looks, the driver has its own name": {nil, []string{"delete attachment=pv-1 node=worker-1", "run"}},
	} {
		for which, provider := range map[string][2]string{"without providerIDs": {"", ""}, "with providerIDs": {"cloud://1", "cloud://2"}} {
			t.Run(name+", "+which, func(t *testing.T) {
				s := newScript()
				playOn(t, s, append(test.how, "node worker-2 driver=disk limit=4")...)
				s.made(provider[0], "node worker-1 driver=disk limit=4")
				playOn(t, s, "pv pv-1 claim=data", "pod a claim=data", "bind pod=a node=worker-1", "run",
					"kubelet worker-1 down", "delete pod=a force", "delete node=worker-1")
				s.made(provider[1], "node worker-1 new")
				playOn(t, s, "kubelet worker-1", "pod b claim=data", "bind pod=b node=worker-1", "run", "explain pod=b", "kubelet worker-1 machine=id-worker-1 off")
				playOn(t, s, test.lines...)
				playOn(t, s, "show volume=pv-1", "delete pod=b", "run", "show volume=pv-1",
					"pod c claim=data", "bind pod=c node=worker-2", "run", "advance 24h", "run", "explain pod=c")
				if s.heldAt("pv-1") != "worker-2" {
					t.Errorf("a day after b has ended in good order it is held at %s", s.heldAt("pv-1"))
				}
			})
		}
	}
}
