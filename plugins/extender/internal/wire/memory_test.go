// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/test/alloctest"
)

// A request costs a few times its length, and at most the body's limit per parallel read.
func TestMemoryIsBounded(t *testing.T) {
	const pod = `{"metadata":{"namespace":"shop","name":"db","uid":"u"},"spec":{}}`
	const size = 16 << 20
	node := `{"metadata":{"name":"node"},"status":{"images":[` + strings.TrimSuffix(strings.Repeat(`{"names":["registry.example.com/image"],"sizeBytes":1},`, 60), ",") + `]}}`
	list := func(element string) string {
		return strings.TrimSuffix(strings.Repeat(element+",", size/(len(element)+1)), ",")
	}
	for name, body := range map[string]string{
		"5,000 whole nodes":     `{"Pod":` + pod + `,"Nodes":{"items":[` + list(node) + `]}}`,
		"an unknown field":      `{"Pod":` + pod + `,"Junk":[` + list(`{}`) + `],"NodeNames":["n"]}`,
		"a node of empty lists": `{"Pod":` + pod + `,"Nodes":{"items":[{"metadata":{"name":"n"},"x":[` + list(`[]`) + `]}]}}`,
		"too many names":        `{"Pod":` + pod + `,"NodeNames":[` + list(`"n"`) + `]}`,
		"a pod of empty things": `{"Pod":{"spec":{"volumes":[` + list(`{}`) + `]}},"NodeNames":["n"]}`,
		"a key without end":     `{"` + strings.Repeat("x", size),
		"many pods":             `{` + list(`"Pod":`+pod) + `,"NodeNames":["n"]}`,
	} {
		used := alloctest.Bytes(func() { _, _ = ReadArgs(strings.NewReader(body)) })
		if limit := uint64(12 * len(body)); used > limit {
			t.Errorf("%s: %d bytes take %d bytes of memory, %.1f times as much", name, len(body), used, float64(used)/float64(len(body)))
		}
	}
	victims := `{"Pod":` + pod + `,"NodeNameToVictims":{"n":{"Pods":[` + list(`{"metadata":{"uid":"u"}}`) + `]}}}`
	if used := alloctest.Bytes(func() { _, _ = ReadPreemption(bytes.NewReader([]byte(victims))) }); used > uint64(12*len(victims)) {
		t.Errorf("victims: %d bytes take %d bytes of memory", len(victims), used)
	}
}
