// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/apitest"
)

// A user may rename a ticket's owner: the UID is the pod's, and the pod is not taken for gone.
func TestARenamedOwnerEndsNoPod(t *testing.T) {
	for name, owner := range map[string]string{"no pod's": "nobody", "another pod's": "other", "none": "", "its own": "db"} {
		t.Run(name, func(t *testing.T) {
			server := apitest.Start(t)
			disk(server, "data")
			server.Put("pods", pod("db", "u1", "", "data"))
			server.Put("pods", pod("other", "u2", "", "data"))
			server.Put("volumetickets", ticket("u1", owner, "n1", "data"))
			o := start(t, server, true)
			if got, err := o.ConfirmPod(t.Context(), "shop", owner, "u1"); err != nil || got == nil || got.Name != "db" {
				t.Errorf("read: %v (%v)", got, err)
			}
			server.Remove("volumetickets", "shop", "u1")
			o.until("the ghost ends", func(s ledger.Snapshot) bool {
				return s.Ticket(ledger.TicketID{Namespace: "shop", Name: "u1"}) == nil
			})
			if s := o.Snapshot(); s.Pod("u1") == nil || s.Pod("u2") == nil {
				t.Error("the pods are there, and one was taken for gone")
			}
		})
	}
}

// The pod is found in its namespace's list. Without an answer its state is unknown.
func TestARenamedOwnerHidesNoNewPod(t *testing.T) {
	server := apitest.Start(t)
	server.Put("pods", pod("other", "u2", "", "data"))
	o := start(t, server, true)
	server.Lag(true)
	server.Put("pods", pod("db", "u1", "", "data"))
	for _, owner := range []string{"nobody", "other"} {
		server.Intercept(func(r apitest.Request, serve func()) error {
			if r.Verb == "list" && r.Resource == "pods" {
				return apierrors.NewServiceUnavailable("not yet")
			}
			serve()
			return nil
		})
		if got, err := o.ConfirmPod(t.Context(), "shop", owner, "u1"); err == nil {
			t.Errorf("owner %q: read %v, and the pods were not listed", owner, got)
		}
		server.Intercept(nil)
		if got, err := o.ConfirmPod(t.Context(), "shop", owner, "u9"); err != nil || got != nil {
			t.Errorf("owner %q: found %v (%v), which does not exist", owner, got, err)
		}
	}
	for _, owner := range []string{"nobody", "other"} {
		if got, err := o.ConfirmPod(t.Context(), "shop", owner, "u1"); err != nil || got == nil || got.Name != "db" {
			t.Errorf("owner %q: read %v (%v)", owner, got, err)
		}
	}
	if s := o.Snapshot(); s.Pod("u1") == nil || s.Pod("u2") == nil {
		t.Error("the pods are there, and one was taken for gone")
	}
}

// The watch's missing name proves the end: the namespace is not listed.
func TestAPodThatEndedIsNotLookedFor(t *testing.T) {
	server := apitest.Start(t)
	server.Put("pods", pod("db", "u1", "", "data"))
	o := start(t, server, true)
	server.Remove("pods", "shop", "db")
	o.until("the pod is gone", func(s ledger.Snapshot) bool { return s.Pod("u1") == nil })
	server.Intercept(func(r apitest.Request, serve func()) error {
		if r.Verb == "list" && r.Resource == "pods" {
			t.Error("the pods were listed")
		}
		serve()
		return nil
	})
	if got, err := o.ConfirmPod(t.Context(), "shop", "db", "u1"); err != nil || got != nil {
		t.Errorf("read: %v (%v)", got, err)
	}
}
