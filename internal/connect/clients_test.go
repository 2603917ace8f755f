// SPDX-License-Identifier: Apache-2.0

package connect_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/connect"
	"github.com/moorage-dev/moorage/test/apitest"
)

func server(t *testing.T) (config connect.Config, asked func() []*http.Request) {
	t.Helper()
	var mu sync.Mutex
	var requests []*http.Request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests = append(requests, r)
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	config = connect.Config{Kubeconfig: apitest.Kubeconfig(t, s.URL), Name: "a-process", QPS: 10, Burst: 10,
		WriteQPS: -1, WriteTimeout: 7 * time.Second, RenewDeadline: 8 * time.Second}
	return config, func() []*http.Request { mu.Lock(); defer mu.Unlock(); return requests }
}

func TestClients(t *testing.T) {
	config, asked := server(t)
	clients, err := connect.New(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	for _, send := range []func(){
		func() { _, _ = clients.Read.CoreV1().Nodes().Get(ctx, "n", metav1.GetOptions{}) },
		func() { _, _ = clients.Write.CoreV1().Nodes().Get(ctx, "n", metav1.GetOptions{}) },
		func() { _, _ = clients.Lease.CoordinationV1().Leases("l").Get(ctx, "n", metav1.GetOptions{}) },
		func() { _, _ = clients.ReadMoorage.VolumeHolds().Get(ctx, "n", metav1.GetOptions{}) },
		func() { _, _ = clients.WriteMoorage.VolumeHolds().Get(ctx, "n", metav1.GetOptions{}) },
	} {
		send()
	}
	want := []struct{ timeout, accept string }{
		{"", "application/vnd.kubernetes.protobuf,application/json"},
		{"7s", "application/vnd.kubernetes.protobuf,application/json"},
		{"4s", "application/vnd.kubernetes.protobuf,application/json"},
		{"", "application/json"},
		{"7s", "application/json"},
	}
	got := asked()
	if len(got) != len(want) {
		t.Fatalf("%d requests arrived, want %d", len(got), len(want))
	}
	for i, r := range got {
		if r.UserAgent() != "a-process" {
			t.Errorf("request %d comes from %q", i, r.UserAgent())
		}
		if timeout := r.URL.Query().Get("timeout"); timeout != want[i].timeout {
			t.Errorf("request %d tells the server to take %q, want %q", i, timeout, want[i].timeout)
		}
		if accept := r.Header.Get("Accept"); !strings.HasPrefix(accept, want[i].accept) {
			t.Errorf("request %d accepts %q, want %q", i, accept, want[i].accept)
		}
	}
}

func TestNoServer(t *testing.T) {
	for _, file := range []string{"", filepath.Join(t.TempDir(), "none")} {
		_, err := connect.New(connect.Config{Kubeconfig: file, Name: "a-process"})
		if err == nil || !strings.Contains(err.Error(), "--kubeconfig") {
			t.Errorf("with kubeconfig %q: %v, want a word on --kubeconfig", file, err)
		}
	}
}
