// SPDX-License-Identifier: Apache-2.0

package kubectl_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/moorage-dev/moorage/internal/kubectl/archive"
	"github.com/moorage-dev/moorage/internal/kubectl/bundle"
	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/test/apitest"
)

// recording is a file that is being written, and what is told meanwhile.
type recording struct {
	t   *testing.T
	end func()

	mu      sync.Mutex
	raw     []byte
	now     time.Time
	told    []string
	changed chan struct{}
}

// Write takes more of the file.
func (r *recording) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.raw = append(r.raw, p...)
	select {
	case r.changed <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (r *recording) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

// later has time pass.
func (r *recording) later(d time.Duration) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
	return r.now
}

// record records a server, whose time is now, until end is called.
func record(t *testing.T, server *apitest.Server, now time.Time) *recording {
	t.Helper()
	return recordAs(t, server, now, metav1.NamespaceDefault)
}

// recordAs is record of a command line with a namespace.
func recordAs(t *testing.T, server *apitest.Server, now time.Time, namespace string) *recording {
	t.Helper()
	c, err := cluster.New(&rest.Config{Host: server.URL, QPS: -1}, namespace)
	if err != nil {
		t.Fatal(err)
	}
	r := &recording{t: t, now: now, changed: make(chan struct{}, 1)}
	c.Clock = r.clock
	ctx, cancel := context.WithCancel(t.Context())
	begun, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- bundle.Record(ctx, c, r, func() { close(begun) }, func(format string, _ ...any) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.told = append(r.told, format)
		})
	}()
	r.end = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(r.end)
	<-begun
	return r
}

// file is the file as it is now, as a kill would leave it.
func (r *recording) file() string {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	file := filepath.Join(r.t.TempDir(), "recording.tar.gz")
	if err := os.WriteFile(file, r.raw, 0o600); err != nil {
		r.t.Fatal(err)
	}
	return file
}

func opened(t *testing.T, file string) *archive.Archive {
	t.Helper()
	a, err := archive.Open(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// answered is what a file answers at a time to a path of the API.
func answered(m archive.Moment, path string) (int, string) {
	answer := httptest.NewRecorder()
	archive.NewServer(m).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
	return answer.Code, answer.Body.String()
}

// shows waits until the file shows an object as a text says; an empty one: it is no more.
func (r *recording) shows(path, want string) {
	r.t.Helper()
	for {
		code, text := answered(opened(r.t, r.file()).End(), path)
		if want == "" && code == http.StatusNotFound || want != "" && strings.Contains(text, want) {
			return
		}
		<-r.changed
	}
}

// recorded is a session in which a node dies: what happens, with the path by which the file
// shows that it has. Of each step there is a bundle, and its time.
func recorded(t *testing.T) (file string, bundles []string, times []time.Time) {
	t.Helper()
	server, now := load(t, "testdata/dead-node")
	r := record(t, server, now)
	keep := func() {
		bundles, times = append(bundles, bundled(t, server, r.clock())), append(times, r.clock())
	}
	keep()
	var node corev1.Node
	var pod corev1.Pod
	nodes, err := server.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) == 0 {
		t.Fatal(err)
	}
	pods, err := server.Kube.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) == 0 {
		t.Fatal(err)
	}
	ready := func(status corev1.ConditionStatus) {
		for i := range nodes.Items {
			if node = nodes.Items[i]; !strings.HasPrefix(node.Name, "worker") {
				continue
			}
			node.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}
			node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(r.clock())}}
			version := server.Put("nodes", &node)
			r.shows("/api/v1/nodes/"+node.Name, `"resourceVersion":"`+version+`"`)
		}
	}
	for _, step := range []func(){
		func() { ready(corev1.ConditionTrue) },
		func() {
			server.Put("leases", &coordinationv1.Lease{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
				ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: node.Name}, Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: r.clock()}}})
			ready(corev1.ConditionUnknown)
		},
		func() {
			pod = pods.Items[0]
			pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
			pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "i", Env: []corev1.EnvVar{{Name: "PASSWORD", Value: "hunter2"}}}}
			version := server.Put("pods", &pod)
			r.shows("/api/v1/namespaces/"+pod.Namespace+"/pods/"+pod.Name, `"resourceVersion":"`+version+`"`)
		},
		func() {
			server.Put("events", &corev1.Event{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}, ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: "e1"},
				InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}, Reason: "FailedMount", Message: "configmap \"settings\" not found",
				LastTimestamp: metav1.NewTime(r.clock())})
			r.shows("/api/v1/namespaces/"+pod.Namespace+"/events/e1", "FailedMount")
		},
		func() {
			server.Outage(func() { server.Remove("pods", pod.Namespace, pod.Name) }) // in no watch
			r.shows("/api/v1/namespaces/"+pod.Namespace+"/pods/"+pod.Name, "")
		},
	} {
		r.later(10 * time.Second)
		step()
		keep()
	}
	r.later(time.Minute)
	r.end()
	return r.file(), bundles, times
}

// At each time a recording has the objects that the API had, without what a bundle leaves out,
// and says what a bundle of that time says.
func TestRecordingAnswersAsBundlesOfItsTimes(t *testing.T) {
	file, bundles, times := recorded(t)
	a := opened(t, file)
	if end := a.End().Now; !end.Equal(times[len(times)-1].Add(time.Minute)) {
		t.Errorf("it ends at %s", end)
	}
	texts := map[string]bool{}
	for i, bundle := range bundles {
		m, err := a.At(times[i])
		if err != nil {
			t.Fatal(err)
		}
		for name := range unpack(t, bundle) {
			resource, ok := strings.CutPrefix(name, "objects/")
			parts := strings.SplitN(strings.TrimSuffix(resource, ".json"), "_", 3)
			if !ok || parts[2] == "leases" { // which are read now and then
				continue
			}
			path := archive.Path(schema.GroupVersionResource{Group: strings.TrimSuffix(parts[0], "core"), Version: parts[1], Resource: parts[2]})
			want, _ := answered(opened(t, bundle).End(), path)
			code, got := answered(m, path)
			if _, text := answered(opened(t, bundle).End(), path); code != want || got != text {
				t.Errorf("at step %d %s is\n%s, want\n%s", i, path, got, text)
			}
			if strings.Contains(got, "hunter2") {
				t.Errorf("%s has the secret", path)
			}
		}
		for _, args := range [][]string{{"explain", "pods", "-n", "shop", "-o", "wide"}, {"explain", "node/worker-1", "-o", "wide"}, {"volumes", "-A"}, {"nodes"}, {"drain-plan", "worker-1"}} {
			want, wantErr, wantCode := ask(t, bundle, nil, args...)
			got, gotErr, code := ask(t, file, nil, append(args, "--at", times[i].Format(time.RFC3339))...)
			words := func(text, name string) string {
				return strings.Join(strings.Fields(strings.ReplaceAll(strings.ReplaceAll(text, "--at "+times[i].Format(time.RFC3339), ""), name, "FILE")), " ")
			}
			if words(got, file) != words(want, bundle) || words(gotErr, file) != words(wantErr, bundle) || code != wantCode {
				t.Errorf("at step %d %v says\n%s%s(exit code %d), and a bundle\n%s%s(exit code %d)", i, args, got, gotErr, code, want, wantErr, wantCode)
			}
			texts[got] = true
		}
	}
	if len(texts) < len(bundles) {
		t.Errorf("only %d different answers: hardly anything happens", len(texts))
	}
	for name, text := range unpack(t, file) {
		if strings.Contains(text, "hunter2") {
			t.Errorf("%s has the secret", name)
		}
	}
}

// A time that a recording does not have is refused with those that it has, and one without a
// file, too.
func TestAtNamesATimeOfTheFile(t *testing.T) {
	server, now := load(t, "testdata/handover")
	file := bundled(t, server, now)
	for at, want := range map[string]string{
		now.Add(time.Second).Format(time.RFC3339): "it goes from " + now.Format(time.RFC3339), "yesterday": "a time such as " + now.Format(time.RFC3339),
	} {
		if _, stderr, code := ask(t, file, nil, "nodes", "--at", at); code != 1 || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, %q", at, code, stderr)
		}
	}
	if _, stderr, code := ask(t, file, nil, "nodes", "--at", now.Format(time.RFC3339)); code != 0 {
		t.Errorf("its own time: exit code %d, %q", code, stderr)
	}
	if _, stderr, code := run(t.Context(), server, now, "nodes", "--at", now.Format(time.RFC3339)); code != 1 || !strings.Contains(stderr, "--bundle") {
		t.Errorf("without a file: exit code %d, %q", code, stderr)
	}
}

// What may not be read is missing in a recording, and said; where nothing may be read, there is
// none. What may be listed and not watched stays as it was, and that is said.
func TestRecordingWithoutRights(t *testing.T) {
	server, now := load(t, "testdata/handover")
	server.Intercept(func(r apitest.Request, serve func()) error {
		if r.Verb == "list" && slices.Contains([]string{"pods", "leases"}, r.Resource) {
			return apierrors.NewForbidden(schema.GroupResource{Resource: r.Resource}, "", nil)
		}
		serve()
		return nil
	})
	r := record(t, server, now)
	if got, _, code := ask(t, r.file(), nil, "explain", "pvc", "data-db-0", "-n", "shop"); code == 0 && got == "" || !slices.ContainsFunc(r.told, func(text string) bool { return strings.HasPrefix(text, "not read") }) {
		t.Errorf("exit code %d, %q, told %q", code, got, r.told)
	}
	if code, text := answered(opened(t, r.file()).End(), "/api/v1/pods"); code != http.StatusForbidden {
		t.Errorf("pods: %d %s", code, text)
	}
	r.end()
	server.Intercept(func(r apitest.Request, serve func()) error {
		if r.Verb == "list" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: r.Resource}, "", nil)
		}
		serve()
		return nil
	})
	c, err := cluster.New(&rest.Config{Host: server.URL}, "default")
	if err != nil {
		t.Fatal(err)
	}
	if err := bundle.Record(t.Context(), c, io.Discard, func() { t.Error("it has begun") }, func(string, ...any) {}); err == nil || !strings.Contains(err.Error(), "nothing could be read") {
		t.Errorf("without any right: %v", err)
	}
}

// Who may list and watch one namespace only records that one.
func TestRecordingOfOneNamespace(t *testing.T) {
	server, now := load(t, "testdata/dead-node")
	server.Intercept(func(r apitest.Request, serve func()) error {
		if (r.Verb == "list" || r.Verb == "watch") && r.Resource+" "+r.Name != "pods shop" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: r.Resource}, "", nil)
		}
		serve()
		return nil
	})
	r := recordAs(t, server, now, "shop")
	pod, err := server.Kube.CoreV1().Pods("shop").Get(t.Context(), "db", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	version := server.Put("pods", pod)
	r.shows("/api/v1/namespaces/shop/pods/db", `"resourceVersion":"`+version+`"`)
	if code, text := answered(opened(t, r.file()).End(), "/api/v1/namespaces/other/pods"); code != http.StatusForbidden {
		t.Errorf("pods of another namespace: %d %s", code, text)
	}
}

// A disk that is full ends the recording with an error.
func TestRecordingThatCanNotBeWritten(t *testing.T) {
	server, now := load(t, "testdata/handover")
	c, err := cluster.New(&rest.Config{Host: server.URL, QPS: -1}, "default")
	if err != nil {
		t.Fatal(err)
	}
	c.Clock = func() time.Time { return now }
	var full bool
	err = bundle.Record(t.Context(), c, writer(func(p []byte) (int, error) {
		if full {
			return 0, io.ErrShortWrite
		}
		return len(p), nil
	}), func() {
		full = true
		server.Remove("nodes", "", "worker-1")
	}, func(string, ...any) {})
	if err == nil {
		t.Error("it ended well")
	}
}

type writer func([]byte) (int, error)

// Write writes.
func (w writer) Write(p []byte) (int, error) { return w(p) }
