// SPDX-License-Identifier: Apache-2.0

package write_test

import (
	"context"
	"errors"
	"testing"
	"time"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/write"
	"github.com/moorage-dev/moorage/test/apitest"
)

// A read proves that the volume is in neither list; nothing is written to the status.
func TestProveAbsent(t *testing.T) {
	tests := map[string]struct {
		inUse, attached []ledger.VolumeID
		change          func(*rules.Step)
		proved          bool
	}{
		"in neither list":        {[]ledger.VolumeID{other}, []ledger.VolumeID{other}, func(*rules.Step) {}, true},
		"in use":                 {[]ledger.VolumeID{data}, nil, func(*rules.Step) {}, false},
		"reported":               {nil, []ledger.VolumeID{data}, func(*rules.Step) {}, false},
		"another node":           {nil, nil, func(s *rules.Step) { s.NodeUID = "another" }, false},
		"by force, in use":       {[]ledger.VolumeID{data}, nil, func(s *rules.Step) { s.Rule = rules.AfterPodGone }, true},
		"by force, and reported": {nil, []ledger.VolumeID{data}, func(s *rules.Step) { s.Rule = rules.AfterPodGone }, false},
		"by force, on another version": {[]ledger.VolumeID{data}, nil, func(s *rules.Step) {
			s.Rule, s.NodeVersion = rules.AfterPodGone, "1"
		}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := start(t, all(withNode(test.inUse, test.attached), withAttachment(nil)), nil)
			step := w.step(rules.ProveAbsent)
			test.change(&step)
			err := w.Do(t.Context(), step)
			if proved := w.place().Proof.Stage == ledger.ProofUnreported; proved != test.proved || (err == nil) != test.proved {
				t.Errorf("proved %v, error %v", proved, err)
			}
			if !test.proved {
				isStale(t, err)
			}
			w.writes()
		})
	}
}

func proved(t *testing.T, change func(*write.Config)) (*world, rules.Step) {
	w := start(t, all(withNode(nil, nil), withAttachment(func(a *storagev1.VolumeAttachment) { a.Finalizers = nil })), change)
	must(t, w.Do(t.Context(), w.step(rules.ProveAbsent)))
	must(t, w.Do(t.Context(), w.step(rules.ConfirmUnwanted)))
	w.server.Forget()
	step := w.step(rules.DeleteAttachment)
	step.Within = 10 * time.Second
	return w, step
}

// The pods are read once more right before the delete.
func TestDeleteWithin(t *testing.T) {
	w, step := proved(t, nil)
	must(t, w.Do(t.Context(), step))
	requests := w.server.Requests()
	if len(requests) != 2 || requests[0].Verb != "list" || requests[0].Resource != "pods" || requests[1].Verb != "delete" {
		t.Errorf("requests %v", requests)
	}
}

func TestDeleteWithinFindsAPod(t *testing.T) {
	w, step := proved(t, nil)
	w.server.Intercept(func(r apitest.Request, serve func()) error {
		if r.Verb == "list" && r.Resource == "pods" { // bound after the first look
			w.server.Put("persistentvolumeclaims", boundClaim("data", "pv-data"))
			w.server.Put("pods", usingPod("late", "late", "data"))
		}
		serve()
		return nil
	})
	isStale(t, w.Do(t.Context(), step))
	w.writes()
}

func TestDeleteWithinItsTime(t *testing.T) {
	w, step := proved(t, nil)
	step.Within = time.Millisecond
	w.server.Intercept(func(r apitest.Request, serve func()) error {
		<-time.After(10 * time.Millisecond)
		serve()
		return nil
	})
	if err := w.Do(t.Context(), step); err == nil { // from the list, or from its successor
		t.Error("the attachment is deleted, it says")
	}
	w.writes()
}

func TestDeleteWithinEndsInItsTime(t *testing.T) {
	w, step := proved(t, func(c *write.Config) { c.Timeout = time.Hour })
	step.Within = 200 * time.Millisecond
	goOn := make(chan struct{})
	t.Cleanup(func() { close(goOn) })
	w.server.Intercept(func(r apitest.Request, serve func()) error {
		if r.Verb == "delete" {
			<-goOn
			return errors.New("the connection breaks")
		}
		serve()
		return nil
	})
	ended := make(chan error, 1)
	go func() { ended <- w.Do(t.Context(), step) }()
	select {
	case err := <-ended:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it waits for the answer as for that of any other write")
	}
}
