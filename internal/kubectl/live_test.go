// SPDX-License-Identifier: Apache-2.0

package kubectl_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/apitest"
)

// Safe for parallel use.
type screenful struct {
	mu      sync.Mutex
	changed *sync.Cond
	text    bytes.Buffer
}

func newScreenful() *screenful {
	s := &screenful{}
	s.changed = sync.NewCond(&s.mu)
	return s
}

func (s *screenful) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changed.Broadcast()
	return s.text.Write(p)
}

func (s *screenful) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *screenful) await(t *testing.T, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		s.mu.Lock() // else it could miss a goroutine that does not wait yet
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})()
	s.mu.Lock()
	defer s.mu.Unlock()
	for !strings.Contains(s.text.String(), want) {
		if ctx.Err() != nil {
			t.Fatalf("%q never came:\n%s", want, s.text.String())
		}
		s.changed.Wait()
	}
}

func start(ctx context.Context, server *apitest.Server, setting kubectl.Setting, args ...string) (out *screenful, ended chan int) {
	out, ended = newScreenful(), make(chan int, 1)
	setting.Server = server.URL
	go func() {
		ended <- kubectl.RunIn(ctx, genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: out}, args, setting)
	}()
	return out, ended
}

func TestTopWithoutLimits(t *testing.T) {
	server, now := load(t, "testdata/limit")
	for _, node := range []string{"worker-1", "worker-2", "worker-3"} {
		server.Remove("csinodes", "", node)
	}
	out, _, code := run(t.Context(), server, now, "top")
	if code != 0 || !strings.Contains(out, "no limit known") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

func TestTop(t *testing.T) {
	server, now := load(t, "testdata/limit")
	ctx, interrupt := context.WithCancel(t.Context())
	setting := kubectl.Setting{Now: func() time.Time { return now }, Style: &screen.Style{Terminal: true, Width: 100, Height: 40}}
	out, ended := start(ctx, server, setting, "top")
	out.await(t, "4 of 6 slots taken")
	server.Remove("pods", "shop", "e")
	out.await(t, "1 waiting")
	interrupt()
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d after Ctrl-C", code)
	}
}

func TestTicketMakeWaits(t *testing.T) {
	server, now := load(t, "testdata/zoo")
	out, ended := start(t.Context(), server, kubectl.Setting{Now: func() time.Time { return now }}, "ticket", "make", "look", "-n", "shop", "--type", "Manual", "--claim", "kept", "--node", "worker-2")
	out.await(t, "waiting: ")
	var ticket v1alpha1.VolumeTicket
	if !server.Get("volumetickets", "shop", "look", &ticket) {
		t.Fatal("there is no ticket")
	}
	if ticket.Spec.Type != "Manual" || ticket.Spec.Volumes[0].Claim.Name != "kept" || *ticket.Spec.TTLSeconds != 3600 {
		t.Errorf("the ticket asks for %+v", ticket.Spec)
	}
	ticket.Status.Conditions = []metav1.Condition{{Type: v1alpha1.TicketGranted, Status: "True", Reason: "Granted"}}
	server.Put("volumetickets", &ticket)
	settle(t, server)
	if code := <-ended; code != 0 || !strings.Contains(out.String(), "look has its volumes at worker-2 for 1h0m0s") {
		t.Errorf("exit code %d: %s", code, out)
	}
	again, errs, code := run(t.Context(), server, now, "ticket", "make", "look", "-n", "shop", "--type", "Manual", "--claim", "kept", "--node", "worker-2")
	if code != 0 || !strings.Contains(strings.Join(strings.Fields(again), " "), "look has its volumes at worker-2 by a ticket that was there already. When it ends: kubectl moorage ticket explain look -n shop") {
		t.Errorf("again: exit code %d: %s%s", code, again, errs)
	}
}

func settle(t *testing.T, server *apitest.Server) {
	t.Helper()
	id := ledger.VolumeID{Driver: "disk.example.com", Handle: "vol-kept"}
	server.Remove("volumeattachments", "", ledger.AttachmentName(id, "worker-1"))
	pv := "pv-kept"
	server.Put("volumeattachments", &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: ledger.AttachmentName(id, "worker-2")},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: id.Driver, NodeName: "worker-2", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}},
		Status:     storagev1.VolumeAttachmentStatus{Attached: true},
	})
	var hold v1alpha1.VolumeHold
	name := v1alpha1.VolumeHoldName(id.Driver, id.Handle)
	if !server.Get("volumeholds", "", name, &hold) {
		t.Fatal("there is no hold")
	}
	hold.Status.Holder.Node = "worker-2"
	server.Put("volumeholds", &hold)
	for node, reported := range map[string]bool{"worker-1": false, "worker-2": true} {
		var n corev1.Node
		if !server.Get("nodes", "", node, &n) {
			t.Fatal("there is no " + node)
		}
		n.Status.VolumesAttached = nil
		if reported {
			n.Status.VolumesAttached = []corev1.AttachedVolume{{Name: "kubernetes.io/csi/disk.example.com^vol-kept"}}
		}
		server.Put("nodes", &n)
	}
}

func TestTicketMakeInterrupted(t *testing.T) {
	server, now := load(t, "testdata/zoo")
	ctx, interrupt := context.WithCancel(t.Context())
	out, ended := start(ctx, server, kubectl.Setting{Now: func() time.Time { return now }}, "ticket", "make", "look", "-n", "shop", "--type", "Manual", "--claim", "kept", "--node", "worker-2")
	out.await(t, "waiting: ")
	var ticket v1alpha1.VolumeTicket
	server.Get("volumetickets", "shop", "look", &ticket)
	ticket.Status.Interruptions = 1
	ticket.Status.Conditions = []metav1.Condition{{Type: v1alpha1.TicketGranted, Status: "Unknown", Reason: "Outranked", Message: "pod db has it"}}
	server.Put("volumetickets", &ticket)
	out.await(t, "waiting: Outranked: pod db has it")
	interrupt()
	if code := <-ended; code == 0 {
		t.Errorf("exit code %d: %s", code, out)
	}
}

func TestTicketMakeTimesOut(t *testing.T) {
	server, now := load(t, "testdata/zoo")
	out, ended := start(t.Context(), server, kubectl.Setting{Now: func() time.Time { return now }},
		"ticket", "make", "look", "-n", "shop", "--type", "Manual", "--claim", "kept", "--node", "worker-2", "--timeout", "1s")
	if code := <-ended; code != 1 || !strings.Contains(out.String(), "timed out after 1s") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

func TestCompletion(t *testing.T) {
	server, now := load(t, "testdata/limit")
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"explain", "pod", "-n", "shop", ""}, []string{"a", "e"}},
		{[]string{"explain", "pvc", "-n", "shop", "data-"}, []string{"data-a", "data-e"}},
		{[]string{"explain", "pv", "pv-"}, []string{"pv-a", "pv-d"}},
		{[]string{"nodes", "worker-"}, []string{"worker-1", "worker-3"}},
		{[]string{"drain-plan", ""}, []string{"worker-2"}},
		{[]string{"ticket", "make", "look", "--node", ""}, []string{"worker-2"}},
		{[]string{"doctor", "-o", ""}, []string{"json", "yaml"}},
	} {
		// The server's address must stand before the completed word.
		last := len(test.args) - 1
		args := append([]string{"__complete", test.args[0]}, "--kubeconfig", os.DevNull, "--server", server.URL)
		args = append(append(args, test.args[1:last]...), test.args[last])
		var out, errs bytes.Buffer
		streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errs}
		kubectl.RunIn(t.Context(), streams, args, kubectl.Setting{Now: func() time.Time { return now }})
		for _, want := range test.want {
			if !strings.Contains("\n"+out.String(), "\n"+want+"\n") {
				t.Errorf("%v: %q is not among %q (%s)", test.args, want, out.String(), errs.String())
			}
		}
	}
}
