// SPDX-License-Identifier: Apache-2.0

package write_test

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/write"
	"github.com/moorage-dev/moorage/test/apitest"
)

var (
	other = ledger.VolumeID{Driver: "d", Handle: "other"}
	third = ledger.VolumeID{Driver: "d", Handle: "third"}
)

func attached(n *corev1.Node) []ledger.VolumeID {
	var list []ledger.VolumeID
	for _, a := range n.Status.VolumesAttached {
		v, _ := convert.VolumeOf(a.Name)
		list = append(list, v)
	}
	return list
}

func TestUnreport(t *testing.T) {
	w := start(t, all(withNode([]ledger.VolumeID{other}, []ledger.VolumeID{other, data}), withAttachment(nil)), nil)
	must(t, w.Do(t.Context(), w.step(rules.Unreport)))
	w.writes("patch nodes/status n1")
	if got := attached(w.node()); !slices.Equal(got, []ledger.VolumeID{other}) {
		t.Errorf("volumesAttached is %v", got)
	}
	p := w.place()
	if p.Reported || p.Proof.Stage != ledger.ProofUnreported {
		t.Errorf("the proof is %+v, reported %v", p.Proof, p.Reported)
	}
	patch := w.server.Requests()[0].Body
	for _, part := range []string{
		`{"op":"test","path":"/metadata/uid","value":"node-uid"}`,
		`{"op":"test","path":"/status/volumesInUse","value":["kubernetes.io/csi/d^other"]}`,
		`{"op":"test","path":"/status/volumesAttached","value":[{"name":"kubernetes.io/csi/d^other","devicePath":""},{"name":"kubernetes.io/csi/d^data","devicePath":""}]}`,
	} {
		if !strings.Contains(patch, part) {
			t.Errorf("the patch does not have %s:\n%s", part, patch)
		}
	}
}

// A volume in neither list is proved by a patch that only tests.
func TestUnreportProvesWithoutWriting(t *testing.T) {
	w := start(t, all(withNode(nil, nil), withAttachment(nil)), nil)
	before := w.node().ResourceVersion
	must(t, w.Do(t.Context(), w.step(rules.Unreport)))
	if w.place().Proof.Stage != ledger.ProofUnreported || w.node().ResourceVersion != before {
		t.Errorf("proof %+v, node at %s, was %s", w.place().Proof, w.node().ResourceVersion, before)
	}
	want := `[{"op":"test","path":"/metadata/uid","value":"node-uid"},{"op":"test","path":"/status/volumesInUse","value":null},{"op":"test","path":"/status/volumesAttached","value":null}]`
	if got := w.server.Requests()[0].Body; got != want {
		t.Errorf("patch %s\nwant  %s", got, want)
	}
}

// Nothing is written, and the change is known when the step returns.
func TestUnreportIsRefused(t *testing.T) {
	tests := map[string]struct {
		change func(*corev1.Node)
		known  func(ledger.Snapshot) bool
	}{
		"a pod begins to use the volume": {
			func(n *corev1.Node) { n.Status.VolumesInUse = []corev1.UniqueVolumeName{convert.UniqueName(data)} },
			func(s ledger.Snapshot) bool { return s.Volume(data).OnNode("n1").InUse },
		},
		"somebody else writes volumesAttached": {
			func(n *corev1.Node) {
				n.Status.VolumesAttached = append(n.Status.VolumesAttached, corev1.AttachedVolume{Name: convert.UniqueName(third)})
			},
			func(s ledger.Snapshot) bool { return s.Volume(third).OnNode("n1") != nil },
		},
		"the node is made again": {
			func(n *corev1.Node) { n.UID = "another" },
			func(s ledger.Snapshot) bool { return s.Node("n1").UID == "another" },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := start(t, all(withNode(nil, []ledger.VolumeID{data}), withAttachment(nil)), nil)
			step := w.step(rules.Unreport)
			w.server.Intercept(func(r apitest.Request, serve func()) error {
				if r.Verb == "patch" {
					node := w.node()
					test.change(node)
					w.server.Put("nodes", node)
				}
				serve()
				return nil
			})
			isStale(t, w.Do(t.Context(), step))
			if !slices.Contains(attached(w.node()), data) || w.place().Proof.Stage != ledger.ProofNone {
				t.Errorf("volumesAttached %v, proof %+v", attached(w.node()), w.place().Proof)
			}
			if !test.known(w.observer.Snapshot()) {
				t.Error("the ledger does not know why")
			}
		})
	}
}

// A rule of force proves the Node's version, not the use.
func TestForcedUnreport(t *testing.T) {
	w := start(t, all(withNode([]ledger.VolumeID{data}, []ledger.VolumeID{data}), withAttachment(nil)), nil)
	step := w.step(rules.Unreport)
	step.Rule = rules.OutOfService

	old := step
	old.NodeVersion = "1"
	isStale(t, w.Do(t.Context(), old))
	w.writes()

	must(t, w.Do(t.Context(), step))
	patch := w.server.Requests()[0].Body
	if !strings.Contains(patch, "/metadata/resourceVersion") || strings.Contains(patch, "volumesInUse") {
		t.Errorf("patch %s", patch)
	}
	if p := w.place(); p.Proof.Stage != ledger.ProofUnreported || !p.InUse {
		t.Errorf("place %+v: what the kubelet said last stays so", p)
	}
}

// A read proves it.
func TestUnreportWithoutNode(t *testing.T) {
	w := start(t, withAttachment(nil), nil)
	must(t, w.Do(t.Context(), w.step(rules.Unreport)))
	if w.place().Proof.Stage != ledger.ProofUnreported {
		t.Errorf("proof %+v", w.place().Proof)
	}
	w.writes()
	w.server.Intercept(func(r apitest.Request, serve func()) error {
		if r.Verb == "get" && r.Resource == "nodes" {
			withNode(nil, []ledger.VolumeID{data})(w.server)
		}
		serve()
		return nil
	})
	step := w.step(rules.Unreport)
	step.NodeUID = ""
	isStale(t, w.Do(t.Context(), step))
}

// A Report without an answer is settled before other writes to its node. An Unreport need not be.
func TestReportWithoutAnswer(t *testing.T) {
	for do, settled := range map[rules.Kind]bool{rules.Report: true, rules.Unreport: false} {
		t.Run(do.String(), func(t *testing.T) {
			w := start(t, all(withNode(nil, nil), withAttachment(nil)), func(c *write.Config) { c.Timeout = 50 * time.Millisecond })
			var began atomic.Pointer[time.Time]
			w.server.Intercept(func(r apitest.Request, serve func()) error {
				if r.Verb != "patch" {
					serve()
					return nil
				}
				began.Store(ptr.To(time.Now()))
				return errors.New("the connection breaks")
			})
			step := rules.Step{Kind: do, Volume: data, Node: "n1", NodeUID: "node-uid"}
			err := w.Do(t.Context(), step)
			if waited := time.Since(*began.Load()); settled && waited < 50*time.Millisecond {
				t.Errorf("it returned after %s, when the API server may still be at it", waited)
			}
			if stale := errors.Is(err, protocol.ErrStale); err == nil || stale != settled {
				t.Errorf("error %v", err)
			}
		})
	}
}

// Changes during a node's patch go into the next patch.
func TestChangesOfANodeShareAPatch(t *testing.T) {
	w := start(t, all(withNode(nil, []ledger.VolumeID{other}), withAttachment(nil)), nil)
	step := func(do rules.Kind, v ledger.VolumeID) rules.Step {
		return rules.Step{Kind: do, Volume: v, Node: "n1", NodeUID: "node-uid"}
	}
	arrived, goOn := make(chan struct{}), make(chan struct{})
	first := true
	w.server.Intercept(func(r apitest.Request, serve func()) error {
		if r.Verb == "patch" && first {
			first = false
			close(arrived)
			<-goOn
		}
		serve()
		return nil
	})
	errs := make(chan error, 4)
	do := func(s rules.Step) { errs <- w.Do(t.Context(), s) }
	go do(step(rules.Report, data))
	<-arrived
	for _, s := range []rules.Step{step(rules.Report, third), step(rules.Unreport, other), step(rules.Report, ledger.VolumeID{Driver: "d", Handle: "fourth"})} {
		go do(s)
	}
	w.Waiting(t, "n1", 3)
	close(goOn)
	for range 4 {
		must(t, <-errs)
	}
	w.writes("patch nodes/status n1", "patch nodes/status n1")
	got := attached(w.node())
	if len(got) != 3 || slices.Contains(got, other) {
		t.Errorf("volumesAttached is %v", got)
	}
}

// Forced volumes leave by two patches. If another component wrote the Node, the rule is judged again.
func TestForcedChangesOfANodeShareAPatch(t *testing.T) {
	volumes := []ledger.VolumeID{data, other, third}
	for name, elsewhere := range map[string]bool{"nobody else writes": false, "somebody else writes": true} {
		t.Run(name, func(t *testing.T) {
			w := start(t, all(withNode(nil, volumes), withAttachment(nil)), nil)
			version := w.observer.Snapshot().Node("n1").Version
			arrived, goOn := make(chan struct{}), make(chan struct{})
			first := true
			w.server.Intercept(func(r apitest.Request, serve func()) error {
				held := r.Verb == "patch" && first
				if held {
					first = false
					close(arrived)
					<-goOn
				}
				serve()
				if held && elsewhere {
					node := w.node()
					node.Labels = map[string]string{"changed": "yes"}
					w.server.Put("nodes", node)
					w.until("the change is seen", func(s ledger.Snapshot) bool { return s.Node("n1").Labels["changed"] == "yes" })
				}
				return nil
			})
			errs := make(chan error, len(volumes))
			do := func(v ledger.VolumeID) {
				errs <- w.Do(t.Context(), rules.Step{Kind: rules.Unreport, Volume: v, Node: "n1", NodeUID: "node-uid", NodeVersion: version, Rule: rules.OutOfService})
			}
			go do(data)
			<-arrived
			go do(other)
			go do(third)
			w.Waiting(t, "n1", 2)
			close(goOn)
			done, stale := 0, 0
			for range volumes {
				switch err := <-errs; {
				case err == nil:
					done++
				case errors.Is(err, protocol.ErrStale):
					stale++
				default:
					t.Error(err)
				}
			}
			left := len(attached(w.node()))
			if elsewhere && (done != 1 || stale != 2 || left != 2) {
				t.Errorf("%d are done and %d stale, and volumesAttached names %d; want 1, 2 and 2", done, stale, left)
			}
			if !elsewhere {
				w.writes("patch nodes/status n1", "patch nodes/status n1")
				if done != len(volumes) || left != 0 {
					t.Errorf("%d are done, and volumesAttached names %d", done, left)
				}
			}
		})
	}
}

// The attachment is confirmed, unless this process made or confirmed it and has not deleted it since.
func TestReport(t *testing.T) {
	w := start(t, all(withNode(nil, nil), withAttachment(nil)), nil)
	must(t, w.Do(t.Context(), w.step(rules.Report)))
	w.writes("patch volumeattachments "+w.step(0).Attachment, "patch nodes/status n1")
	if got := attached(w.node()); !slices.Equal(got, []ledger.VolumeID{data}) || !w.place().Reported {
		t.Errorf("volumesAttached is %v, the ledger says %v", got, w.place().Reported)
	}
	if strings.Contains(w.server.Requests()[1].Body, "volumesInUse") {
		t.Error("a report must not fail because something else is used")
	}

	t.Run("again", func(t *testing.T) {
		w.t = t
		must(t, w.Do(t.Context(), w.step(rules.Unreport)))
		w.server.Forget()
		must(t, w.Do(t.Context(), w.step(rules.Report)))
		w.writes("patch nodes/status n1")
	})
	t.Run("after a DELETE whose end is not known", func(t *testing.T) {
		w.t = t
		must(t, w.Do(t.Context(), w.step(rules.Unreport)))
		w.server.Intercept(func(r apitest.Request, serve func()) error {
			if r.Verb == "delete" {
				return apierrors.NewTimeoutError("no answer", 0)
			}
			serve()
			return nil
		})
		if err := w.Do(t.Context(), w.step(rules.DeleteAttachment)); err == nil {
			t.Fatal("the delete succeeded")
		}
		w.server.Forget()
		must(t, w.Do(t.Context(), w.step(rules.Report)))
		w.writes("patch volumeattachments "+w.step(0).Attachment, "patch nodes/status n1")
	})
}

// The delete in flight comes first.
func TestReportOfWhatIsBeingDeleted(t *testing.T) {
	for name, change := range map[string]func(*world){
		"deleted": func(w *world) {
			_ = w.server.Kube.StorageV1().VolumeAttachments().Delete(w.t.Context(), w.step(0).Attachment, deleteNow)
		},
		"gone":        func(w *world) { w.server.Remove("volumeattachments", "", w.step(0).Attachment) },
		"another one": func(w *world) { withAttachment(func(a *storagev1.VolumeAttachment) { a.UID = "new" })(w.server) },
		"not attached": func(w *world) {
			withAttachment(func(a *storagev1.VolumeAttachment) { a.Status.Attached = false })(w.server)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, all(withNode(nil, nil), withAttachment(nil)), nil)
			step := w.step(rules.Report)
			change(w)
			isStale(t, w.Do(t.Context(), step))
			if got := attached(w.node()); len(got) > 0 {
				t.Errorf("volumesAttached is %v", got)
			}
		})
	}
}

func TestPatchErrors(t *testing.T) {
	w := start(t, all(withNode(nil, nil), withAttachment(nil)), nil)
	w.server.Intercept(func(r apitest.Request, serve func()) error {
		return apierrors.NewForbidden(corev1.Resource("nodes"), "n1", write.ErrNoLease)
	})
	if err := w.Do(t.Context(), w.step(rules.Unreport)); !apierrors.IsForbidden(err) {
		t.Errorf("error %v, want Forbidden", err)
	}
}
