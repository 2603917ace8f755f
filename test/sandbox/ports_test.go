// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"fmt"
	"net"
	"testing"
)

func TestPortIsOneClustersUntilItIsGivenBack(t *testing.T) {
	var ours ports
	t.Cleanup(func() { ours.close() })
	addr, err := ours.next()
	if err != nil {
		t.Fatal(err)
	}
	port, err := portOf(addr)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("@moorage-sandbox/port/%s", port)
	if hold, err := net.Listen("unix", name); err == nil {
		hold.Close()
		t.Fatalf("another cluster may choose %s", addr)
	}
	ours.close()
	hold, err := net.Listen("unix", name)
	if err != nil {
		t.Fatalf("%s is not given back: %v", addr, err)
	}
	hold.Close()
}

func TestPortsAreFreeAndDifferent(t *testing.T) {
	var p ports
	t.Cleanup(func() { p.close() })
	seen := map[string]bool{}
	for range 50 {
		addr, err := p.next()
		if err != nil {
			t.Fatal(err)
		}
		if seen[addr] {
			t.Fatalf("%s is given twice", addr)
		}
		seen[addr] = true
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatalf("%s is not free: %v", addr, err)
		}
		l.Close()
	}
}
