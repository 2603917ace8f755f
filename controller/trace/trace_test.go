// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/controller/trace"
	"github.com/moorage-dev/moorage/internal/ledger"
)

const uid = "0f0e0d0c-0b0a-0908-0706-050403020100"

var data = ledger.VolumeID{Driver: "d", Handle: "data"}

// way is a pod on its way, at a cluster of two nodes and one volume.
type way struct {
	t       *testing.T
	ledger  *ledger.Ledger
	tracer  *trace.Tracer
	spans   *tracetest.InMemoryExporter
	start   time.Time
	now     time.Time
	version int
}

func begin(t *testing.T) *way {
	t.Helper()
	spans := tracetest.NewInMemoryExporter()
	start := time.Unix(1000, 400_000_000)
	w := &way{t: t, ledger: ledger.New(), spans: spans, tracer: trace.New(sdk.NewSimpleSpanProcessor(spans), "test"), start: start, now: start}
	w.apply(ledger.PersistentVolume{Name: "pv", Volume: data, Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "shop", Name: "data"}})
	w.apply(ledger.Claim{Key: ledger.ClaimKey{Namespace: "shop", Name: "data"}, PersistentVolume: "pv", Bound: true})
	w.node("n1")
	w.node("n2")
	return w
}

func (w *way) apply(e ledger.Event) {
	w.version++
	version := fmt.Sprint(w.version)
	switch fact := e.(type) {
	case ledger.PersistentVolume:
		fact.Version = version
		e = fact
	case ledger.Claim:
		fact.Version = version
		e = fact
	case ledger.NodeState:
		fact.Version = version
		e = fact
	case ledger.Pod:
		fact.Version = version
		e = fact
	case ledger.Ticket:
		fact.Version = version
		e = fact
	case ledger.Attachment:
		fact.Version = version
		e = fact
	}
	w.ledger.Apply(w.now, e)
}

func (w *way) node(name ledger.NodeName, reported ...ledger.VolumeID) {
	w.apply(ledger.NodeState{Name: name, UID: string(name), Ready: ledger.ReadyTrue, Managed: true, Reporting: true, Reported: reported})
}

func (w *way) pod(node ledger.NodeName) {
	w.apply(ledger.Pod{UID: uid, Namespace: "shop", Name: "db", Node: node, Phase: ledger.PodLive, Created: w.start.Unix(),
		Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}})
}

func (w *way) ticket(phase ledger.TicketPhase) {
	w.apply(ledger.Ticket{ID: ledger.TicketID{Namespace: "shop", Name: uid}, UID: "t", Type: ledger.TypePod, Pod: uid, Node: "n2", Phase: phase, Created: w.now.Unix(),
		Volumes: []ledger.TicketVolume{{Claim: "data"}}})
}

func (w *way) attachment(node ledger.NodeName, attached bool) {
	w.apply(ledger.Attachment{Name: ledger.AttachmentName(data, node), UID: string(node), Driver: "d", Node: node, PersistentVolume: "pv", Ours: true, Attached: attached})
}

// after has time pass, and the tracer look at the pod after what was done by then.
func (w *way) after(passed time.Duration, do func()) {
	w.now = w.start.Add(passed)
	do()
	w.look(corev1.PodPending)
}

func (w *way) look(phase corev1.PodPhase) {
	s := w.ledger.Snapshot()
	w.tracer.Look(s, s.Pod(uid), phase, w.now)
}

func (w *way) becomes(phase corev1.PodPhase) {
	object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: uid}, Status: corev1.PodStatus{Phase: phase}}
	w.tracer.Pod(object, w.ledger.Snapshot, w.now)
}

// want fails the test unless these spans were made: name, begin and end in milliseconds
// since the pod was made.
func (w *way) want(spans ...string) tracetest.SpanStubs {
	w.t.Helper()
	made := w.spans.GetSpans()
	var got []string
	for _, s := range made {
		got = append(got, fmt.Sprintf("%s %d-%d", s.Name, s.StartTime.Sub(w.start).Milliseconds(), s.EndTime.Sub(w.start).Milliseconds()))
	}
	if !slices.Equal(got, spans) {
		w.t.Errorf("the spans are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(spans, "\n"))
	}
	return made
}

// travel is a pod's whole way, whose volume is at another node before.
func (w *way) travel() {
	w.attachment("n1", true)
	w.after(0, func() { w.pod("") })
	w.after(100*time.Millisecond, func() { w.ticket(ledger.TicketPending) })
	w.after(300*time.Millisecond, func() { w.ticket(ledger.TicketGranted) })
	w.after(350*time.Millisecond, func() { w.pod("n2") })
	w.after(2*time.Second, func() { w.apply(ledger.AttachmentGone{Name: ledger.AttachmentName(data, "n1")}) })
	w.after(2100*time.Millisecond, func() { w.attachment("n2", false) })
	w.after(4*time.Second, func() { w.attachment("n2", true) })
	w.after(4200*time.Millisecond, func() { w.node("n2", data) })
	w.now = w.start.Add(9 * time.Second)
	w.becomes(corev1.PodRunning)
}

// A pod's way is one trace under the ID that its UID is, each stage a span below the pod's.
func TestPodsWay(t *testing.T) {
	w := begin(t)
	w.travel()
	made := w.want("filter 0-100", "grant 100-300", "bind 300-350", "detach 0-2000", "attach 2100-4000", "report 4000-4200", "mount 4200-9000", "pod shop/db 0-9000")
	root := made[len(made)-1]
	for _, s := range made {
		if s.SpanContext.TraceID().String() != strings.ReplaceAll(uid, "-", "") {
			t.Errorf("span %s is of trace %s", s.Name, s.SpanContext.TraceID())
		}
		if s.Name != root.Name && s.Parent.SpanID() != root.SpanContext.SpanID() {
			t.Errorf("span %s is not below the pod's", s.Name)
		}
	}
	var events []string
	for _, e := range root.Events {
		events = append(events, e.Name)
	}
	if want := []string{"admitted", "reserved", "granted"}; !slices.Equal(events, want) {
		t.Errorf("the pod's events are %v, want %v", events, want)
	}
}

// A ticket that was seen late, and says the second in which its pod was made, is not older
// than the pod.
func TestTicketIsNotOlderThanItsPod(t *testing.T) {
	w := begin(t)
	w.after(0, func() { w.pod("") })
	w.ticket(ledger.TicketGranted)
	w.after(1200*time.Millisecond, func() {})
	w.after(1300*time.Millisecond, func() { w.pod("n2") })
	w.becomes(corev1.PodRunning)
	w.want("filter 0-0", "grant 0-1200", "bind 1200-1300", "pod shop/db 0-1300")
}

// A grant that was not seen, since the ticket has ended with the bind, was no later than that.
func TestTicketThatHasEnded(t *testing.T) {
	w := begin(t)
	w.after(0, func() { w.pod(""); w.ticket(ledger.TicketPending) })
	w.after(200*time.Millisecond, func() {
		w.pod("n2")
		w.apply(ledger.TicketGone{ID: ledger.TicketID{Namespace: "shop", Name: uid}})
	})
	w.becomes(corev1.PodRunning)
	w.want("filter 0-0", "grant 0-200", "bind 200-200", "pod shop/db 0-200")
}

// Two leaders that see the same make the same trace, and not two of one pod.
func TestTwoLeadersMakeOneTrace(t *testing.T) {
	first, second := begin(t), begin(t)
	first.travel()
	second.travel()
	a, b := first.spans.GetSpans(), second.spans.GetSpans()
	ids := map[string]bool{}
	for i := range a {
		if a[i].SpanContext.SpanID() != b[i].SpanContext.SpanID() {
			t.Errorf("span %s has two IDs", a[i].Name)
		}
		ids[a[i].SpanContext.SpanID().String()] = true
	}
	if len(ids) != len(a) {
		t.Errorf("%d spans have %d IDs", len(a), len(ids))
	}
}

// A leader that comes late says what it has seen, and that it is not all; times of before
// are the objects'.
func TestLateLeader(t *testing.T) {
	w := begin(t)
	w.after(5*time.Second, func() { w.pod("n2"); w.attachment("n2", false) })
	w.after(6*time.Second, func() { w.attachment("n2", true); w.node("n2", data) })
	w.now = w.start.Add(7 * time.Second)
	w.becomes(corev1.PodRunning)
	made := w.want("attach 5000-6000", "report 6000-6000", "mount 6000-7000", "pod shop/db -400-7000")
	partial := false
	for _, a := range made[len(made)-1].Attributes {
		partial = partial || a.Key == "moorage.partial" && a.Value.AsBool()
	}
	if !partial {
		t.Error("it does not say that it is not all")
	}
}

// A pod is followed from when its object is seen, which is before it is looked at.
func TestSeenBeforeItIsLookedAt(t *testing.T) {
	w := begin(t)
	object := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: uid, CreationTimestamp: metav1.Unix(w.start.Unix(), 0)},
		Spec:       corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v"}}}, Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	w.tracer.Pod(object, w.ledger.Snapshot, w.now)
	w.after(200*time.Millisecond, func() { w.pod(""); w.ticket(ledger.TicketPending) })
	w.after(300*time.Millisecond, func() { w.ticket(ledger.TicketGranted); w.pod("n2") })
	w.now = w.start.Add(time.Second)
	w.becomes(corev1.PodRunning)
	w.want("filter 0-200", "grant 200-300", "bind 300-300", "pod shop/db 0-1000")

	// One that has no volume to attach, as it turns out, has no trace.
	w.spans.Reset()
	object.Name, object.UID = "web", "web"
	w.tracer.Pod(object, w.ledger.Snapshot, w.now)
	object.Status.Phase = corev1.PodRunning
	w.tracer.Pod(object, w.ledger.Snapshot, w.now)
	w.want()
}

// A volume that is at the node already has no spans of its own.
func TestVolumeThatIsThere(t *testing.T) {
	w := begin(t)
	w.attachment("n2", true)
	w.node("n2", data)
	w.after(0, func() { w.pod("n2") })
	w.now = w.start.Add(time.Second)
	w.becomes(corev1.PodRunning)
	w.want("mount 0-1000", "pod shop/db 0-1000")
}

// Pods that run already, that never run or that were deleted have no trace, and one that
// runs has one only.
func TestWhoHasNoTrace(t *testing.T) {
	w := begin(t)
	w.pod("n2")
	w.look(corev1.PodRunning)
	w.becomes(corev1.PodRunning)
	w.want()
	w.look(corev1.PodPending)
	w.becomes(corev1.PodFailed)
	w.becomes(corev1.PodRunning)
	w.want()
	w.look(corev1.PodPending)
	w.becomes(corev1.PodRunning)
	w.becomes(corev1.PodRunning)
	if made := w.spans.GetSpans(); len(made) != 1 {
		t.Errorf("%d spans were made of a pod that ran twice, want the pod's", len(made))
	}
	var none *trace.Tracer
	none.Look(w.ledger.Snapshot(), nil, corev1.PodPending, w.now)
	none.Pod(nil, nil, w.now)
	if err := none.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// The file has OTLP's JSON, a batch a line, with IDs in hex, as collectors read it.
func TestFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "traces.jsonl")
	tracer, err := trace.Open(t.Context(), "", file, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	w := begin(t)
	w.tracer = tracer
	w.travel()
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var batch struct {
		ResourceSpans []struct {
			ScopeSpans []struct {
				Spans []struct{ TraceID, SpanID, ParentSpanID, Name, StartTimeUnixNano string }
			}
		}
	}
	if err := json.Unmarshal(raw, &batch); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	spans := batch.ResourceSpans[0].ScopeSpans[0].Spans
	if len(spans) != 8 {
		t.Fatalf("the file has %d spans: %s", len(spans), raw)
	}
	for _, s := range spans {
		if s.TraceID != strings.ReplaceAll(uid, "-", "") || len(s.SpanID) != 16 || (s.ParentSpanID == "") != (s.Name == "pod shop/db") {
			t.Errorf("span %+v", s)
		}
	}
}

// collector keeps the spans that it is sent by gRPC.
type collector struct {
	collectorpb.UnimplementedTraceServiceServer
	mu    sync.Mutex
	spans []string
}

func (c *collector) Export(_ context.Context, r *collectorpb.ExportTraceServiceRequest) (*collectorpb.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range r.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				c.spans = append(c.spans, span.Name)
			}
		}
	}
	return &collectorpb.ExportTraceServiceResponse{}, nil
}

// An endpoint gets the spans by OTLP.
func TestEndpoint(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var got collector
	server := grpc.NewServer()
	collectorpb.RegisterTraceServiceServer(server, &got)
	ended := make(chan error)
	go func() { ended <- server.Serve(listener) }()
	tracer, err := trace.Open(t.Context(), "http://"+listener.Addr().String(), "", "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	w := begin(t)
	w.tracer = tracer
	w.travel()
	if err := tracer.Close(t.Context()); err != nil {
		t.Error(err)
	}
	server.Stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if len(got.spans) != 8 {
		t.Errorf("the collector got %v", got.spans)
	}
}

// Off is what is not asked for, and what can't be written to is said at once.
func TestOpen(t *testing.T) {
	if tracer, err := trace.Open(t.Context(), "", "", ""); tracer != nil || err != nil {
		t.Errorf("without an endpoint and a file: %v, %v", tracer, err)
	}
	if _, err := trace.Open(t.Context(), "", filepath.Join(t.TempDir(), "no", "folder"), ""); err == nil {
		t.Error("a file that can't be made is let pass")
	}
}

// A UID that is no UUID has a trace of its own, too.
func TestTraceID(t *testing.T) {
	if a, b := trace.TraceID("static-pod"), trace.TraceID("other-pod"); !a.IsValid() || a == b {
		t.Errorf("traces %s and %s", a, b)
	}
}
