// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/apitest"
)

// A hold's outage is known at the first decision; an unreadable Lease holds up nothing.
func TestLeasesAreReadFirst(t *testing.T) {
	for _, refused := range []bool{false, true} {
		server := apitest.Start(t)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: metav1.Unix(100, 0)}}}}
		server.Put("nodes", node)
		renewed := metav1.NewMicroTime(time.Unix(77, 123000))
		server.Put("leases", &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-node-lease", Name: "n"}, Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}})
		server.Intercept(func(r apitest.Request, serve func()) error {
			if r.Resource == "leases" && refused {
				return apierrors.NewForbidden(schema.GroupResource{Resource: r.Resource}, r.Name, nil)
			}
			serve()
			return nil
		})
		o, err := New(Config{Kube: server.Kube, Moorage: server.Moorage})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); o.Run(ctx) }()
		if err := o.WaitForSync(ctx); err != nil {
			t.Fatal(err)
		}
		if n := o.Snapshot().Node("n"); n.RenewedAt.IsZero() != refused || (n.Renewed == renewed.UnixMicro()) == refused {
			t.Errorf("refused %t: the Lease was read at %v, renewed at %d", refused, n.RenewedAt, n.Renewed)
		}
		cancel()
		<-ended
	}
}

func TestLeasesOfNodesThatAreNotReady(t *testing.T) {
	for _, test := range []struct {
		nodes int
		verbs string
	}{{3, "get get get"}, {maxSingleLeases + 1, "list"}} {
		server, now := apitest.Start(t), time.Unix(1000, 0)
		o := &Observer{config: Config{Kube: server.Kube, Now: func() time.Time { return now }}, ledger: ledger.New()}
		renewed := metav1.NewMicroTime(time.Unix(77, 123000))
		for i := range test.nodes {
			name := fmt.Sprintf("n%02d", i)
			o.Apply(ledger.NodeState{Name: ledger.NodeName(name), UID: name, Version: "1", Ready: ledger.Readiness(i % 2)})
			if i > 0 {
				server.Put("leases", &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-node-lease", Name: name},
					Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}})
			}
		}
		o.Apply(ledger.NodeState{Name: "ready", UID: "ready", Version: "1", Ready: ledger.ReadyTrue})
		server.Forget()
		if err := o.readLeases(t.Context()); err != nil {
			t.Fatal(err)
		}
		var verbs []string
		for _, r := range server.Requests() {
			verbs = append(verbs, r.Verb)
		}
		if got := strings.Join(verbs, " "); got != test.verbs {
			t.Errorf("%d nodes: it asked %q, want %q", test.nodes, got, test.verbs)
		}
		for n := range o.Snapshot().Nodes() {
			want := map[bool]int64{true: renewed.UnixMicro()}[n.Name != "n00" && n.Name != "ready"]
			if n.Renewed != want || n.RenewedAt.Equal(now) != (n.Name != "ready") {
				t.Errorf("%s was renewed at %d, read at %v", n.Name, n.Renewed, n.RenewedAt)
			}
		}
		server.Intercept(func(r apitest.Request, serve func()) error {
			if r.Verb == "list" || strings.HasSuffix(r.Name, "n01") {
				return apierrors.NewForbidden(schema.GroupResource{Resource: r.Resource}, r.Name, nil)
			}
			serve()
			return nil
		})
		now = now.Add(time.Minute)
		if err := o.readLeases(t.Context()); err == nil {
			t.Error("a Lease that can't be read is no error")
		}
		if n := o.Snapshot().Node("n01"); !n.LeaseRead.IsZero() {
			t.Errorf("a Lease that must not be read counts as read at %v", n.LeaseRead)
		}
	}
}

// Without an answer no Lease stands still; a refusal is an answer.
func TestLeasesUnread(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"refused":        {apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "n", nil), false},
		"no answer":      {errors.New("connection refused"), true},
		"it is starting": {apierrors.NewServiceUnavailable("starting"), true},
		"too busy":       {apierrors.NewTooManyRequests("later", 1), false},
	} {
		for _, nodes := range []int{1, maxSingleLeases + 1} {
			server, now := apitest.Start(t), time.Unix(1000, 0)
			o := &Observer{config: Config{Kube: server.Kube, Now: func() time.Time { return now }}, ledger: ledger.New()}
			for i := range nodes {
				o.Apply(ledger.NodeState{Name: ledger.NodeName(fmt.Sprintf("n%02d", i)), UID: "u", Version: "1", Ready: ledger.ReadyUnknown})
			}
			server.Intercept(func(apitest.Request, func()) error { return test.err })
			if err := o.readLeases(t.Context()); err == nil {
				t.Error("it is no error")
			}
			for n := range o.Snapshot().Nodes() {
				if n.UnreadSince.IsZero() == test.want {
					t.Errorf("%s, %d nodes: %s is unread since %v", name, nodes, n.Name, n.UnreadSince)
				}
			}
		}
	}
}
