// SPDX-License-Identifier: Apache-2.0

package networkfence

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/networkfence"
	"github.com/moorage-dev/moorage/test/apitest"
)

func TestForgottenWithoutLeading(t *testing.T) {
	l := ledger.New()
	l.Apply(time.Now(), ledger.NodeState{Name: "there", UID: "u", Version: "1"})
	l.Apply(time.Now(), ledger.NodeDrivers{Node: "there", Version: "1", Drivers: []ledger.DriverOnNode{{Name: "d", NodeID: "there"}}})
	w, err := NewWatcher(nil, l.Snapshot)
	if err != nil {
		t.Fatal(err)
	}
	gone := func(node string) {
		w.was(&unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"namespace": "x", "name": node},
			"spec":     map[string]any{"driver": map[string]any{"name": "d", "nodeID": node}},
		}})
	}
	gone("there")
	const many = 10000
	for i := range many {
		gone(fmt.Sprint("node-", i))
	}
	if n := len(w.gone); n > many/10 {
		t.Errorf("%d are remembered of %d whose nodes are gone", n, many)
	}
	if is := w.state(l.Snapshot(), time.Now()).Clients; len(is) != 1 || is[0].NodeID != "there" {
		t.Errorf("remembered %+v, want what was said of the node that is there", is)
	}
}

// The API server might carry out an abandoned write after the next leader's other decision.
func TestWriteIsAnsweredAtTheEndOfATerm(t *testing.T) {
	server := apitest.Start(t)
	fence := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "f"}}}
	fence.SetAPIVersion(networkfence.GroupVersion.String())
	fence.SetKind("NetworkFence")
	server.Put("networkfences", fence)
	server.Get("networkfences", "", "f", &fence.Object)
	ctx, end := context.WithCancel(t.Context())
	server.Intercept(func(r apitest.Request, serve func()) error {
		if r.Verb == "delete" {
			end()
		}
		serve()
		return nil
	})
	c := &Controller{config: Config{Dynamic: server.Any, Turn: func(context.Context) error { return nil }, Timeout: 10 * time.Second, Now: time.Now}}
	if err := c.do(ctx, networkfence.Action{Do: networkfence.Delete, Name: "f", UID: string(fence.GetUID()), Version: fence.GetResourceVersion()}); err != nil {
		t.Errorf("it is given up: %v", err)
	}
	if server.Get("networkfences", "", "f", &fence.Object) {
		t.Error("it is not carried out")
	}
}
