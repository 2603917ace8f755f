// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/internal/connect"
	"github.com/moorage-dev/moorage/internal/watch"
	"github.com/moorage-dev/moorage/test/apitest"
)

// The controller starts without NodeMountReports, and ends when it may read them: the next process hears
// the nodes.
func TestNodeWordsThatCanBeReadLater(t *testing.T) {
	server := apitest.Start(t)
	rest, err := connect.Rest(apitest.Kubeconfig(t, server.URL), "test")
	if err != nil {
		t.Fatal(err)
	}
	moorage, err := client.NewForConfig(rest)
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	server.Intercept(func(_ apitest.Request, serve func()) error {
		if asked.Add(1) <= 3 {
			return apierrors.NewForbidden(schema.GroupResource{Group: "moorage.dev", Resource: "nodemountreports"}, "", nil)
		}
		serve()
		return nil
	})
	config := Config{WriteTimeout: time.Minute}
	if kinds, hears := config.kinds(t.Context(), moorage); hears || slices.Contains(kinds, watch.NodeWords) {
		t.Errorf("it observes %v", kinds)
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	config.awaitNodeWords(ctx, moorage, time.Millisecond, end)
	if ctx.Err() == nil || asked.Load() != 4 {
		t.Errorf("it ended: %t, after %d requests", ctx.Err() != nil, asked.Load())
	}
	if kinds, hears := config.kinds(t.Context(), moorage); !hears || !slices.Contains(kinds, watch.NodeWords) {
		t.Errorf("it observes %v", kinds)
	}
}
