// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/moorage-dev/moorage/internal/watch"
	"github.com/moorage-dev/moorage/plugins/internal/binding"
	"github.com/moorage-dev/moorage/test/apitest"
	"github.com/moorage-dev/moorage/test/certtest"
)

// It measures no time: only a failing test takes it.
const patience = 30 * time.Second

type rig struct {
	*apitest.Server
	t        *testing.T
	x        *Extender
	observer *watch.Observer
	until    atomic.Pointer[time.Time] // the end of the lease
	files    certtest.Files
	address  string
	client   *http.Client
	endTerm  context.CancelFunc
}

func newRig(t *testing.T, prepare func(*rig)) *rig {
	t.Helper()
	r := newIdleRig(t, prepare)
	r.lead(time.Hour)
	return r
}

func newIdleRig(t *testing.T, prepare func(*rig)) *rig {
	t.Helper()
	r := &rig{Server: apitest.Start(t), t: t, files: certtest.NewFiles(t, "moorage-extender")}
	for _, name := range []string{"n1", "n2", "n3"} {
		r.Put("nodes", node(name))
		r.Put("csinodes", csiNode(name, 2))
	}
	if prepare != nil {
		prepare(r)
	}
	factory := informers.NewSharedInformerFactory(r.Kube, 0)
	var err error
	if r.observer, err = watch.New(watch.Config{Kube: r.Kube, Moorage: r.Moorage, Factory: factory}); err != nil {
		t.Fatal(err)
	}
	placer := &binding.Placer{Ledger: r.observer.Ledger(), Now: time.Now, Binder: binding.Binder{
		Confirm: r.observer.ConfirmPod, Change: binding.ChangeBy(r.Kube), Until: func() time.Time { return *r.until.Load() },
		Send: func(ctx context.Context, b *corev1.Binding) error {
			return r.Kube.CoreV1().Pods(b.Namespace).Bind(ctx, b, metav1.CreateOptions{})
		},
	}}
	if r.x, err = New(Options{Config: r.config(), Facts: r.observer, Placer: placer, Pods: factory.Core().V1().Pods().Informer(), Kube: r.Kube}); err != nil {
		t.Fatal(err)
	}
	r.address = r.x.listener.Addr().String()
	r.client = r.files.Client(t, scheduler)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() {
		r.client.CloseIdleConnections()
		cancel()
		running.Wait()
		factory.Shutdown()
	})
	factory.Start(ctx.Done())
	running.Go(func() { r.observer.Run(ctx) })
	running.Go(func() {
		if err := r.x.Run(ctx); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return r
}

func (r *rig) lead(lease time.Duration) {
	r.t.Helper()
	if err := errors.Join(r.observer.WaitForSync(r.t.Context()), r.observer.CatchUp(r.t.Context())); err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	until := time.Now().Add(lease)
	r.until.Store(&until)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.x.Lead(ctx, func() time.Time { return until })
	}()
	r.endTerm = func() {
		cancel()
		<-ended
	}
	r.t.Cleanup(r.endTerm)
	r.eventually("the extender to lead", func() bool { return r.x.leading() == nil })
	r.Forget()
}

func (r *rig) config() Config {
	c := DefaultConfig()
	c.Listen = "127.0.0.1:0"
	c.CertFile, c.KeyFile, c.ClientCAFile = r.files.Cert, r.files.Key, r.files.CA
	return c
}

func (r *rig) api(f func(apitest.Request, func()) error) {
	r.Intercept(f)
}

func (r *rig) hangs() (arrived <-chan struct{}, goOn func()) {
	there, release := make(chan struct{}), make(chan struct{})
	var once, end sync.Once
	r.api(func(request apitest.Request, serve func()) error {
		if request.Resource == "pods/binding" {
			once.Do(func() { close(there) })
			<-release
		}
		serve()
		return nil
	})
	goOn = func() { end.Do(func() { close(release) }) }
	r.t.Cleanup(goOn)
	return there, goOn
}

func (r *rig) post(verb string, body []byte) (int, []byte) {
	r.t.Helper()
	response, err := r.client.Post("https://"+r.address+"/"+verb, "application/json", bytes.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return response.StatusCode, answer
}

func (r *rig) ask(verb string, args, result any) {
	r.t.Helper()
	body, err := json.Marshal(args)
	if err != nil {
		r.t.Fatal(err)
	}
	code, answer := r.post(verb, body)
	if code != http.StatusOK {
		r.t.Fatalf("%s: %d %s", verb, code, answer)
	}
	if err := json.Unmarshal(answer, result); err != nil {
		r.t.Fatalf("%s: %v in %s", verb, err, answer)
	}
}

func (r *rig) filter(pod *corev1.Pod) extenderv1.ExtenderFilterResult {
	r.t.Helper()
	names := []string{"n1", "n2", "n3"}
	var result extenderv1.ExtenderFilterResult
	r.ask(verbFilter, extenderv1.ExtenderArgs{Pod: pod, NodeNames: &names}, &result)
	return result
}

func bindingArgs(pod *corev1.Pod, node string) extenderv1.ExtenderBindingArgs {
	return extenderv1.ExtenderBindingArgs{PodName: pod.Name, PodNamespace: pod.Namespace, PodUID: pod.UID, Node: node}
}

func (r *rig) bind(pod *corev1.Pod, node string) string {
	r.t.Helper()
	var result extenderv1.ExtenderBindingResult
	r.ask(verbBind, bindingArgs(pod, node), &result)
	return result.Error
}

func (r *rig) nodeOf(pod *corev1.Pod) string {
	var found corev1.Pod
	r.Get("pods", pod.Namespace, pod.Name, &found)
	return found.Spec.NodeName
}

func (r *rig) unreserved(pod *corev1.Pod) {
	r.t.Helper()
	if known := r.x.Facts.Snapshot().Pod(string(pod.UID)); known == nil || known.Node != "" {
		r.t.Errorf("the ledger has %+v", known)
	}
}

func (r *rig) seen(pods ...*corev1.Pod) {
	r.t.Helper()
	for _, pod := range pods {
		r.eventually("pod "+pod.Name+" to be seen", func() bool { return r.x.Facts.Snapshot().Pod(string(pod.UID)) != nil })
	}
}

func (r *rig) writes() []string {
	var list []string
	for _, w := range r.Writes() {
		if !strings.Contains(w, " leases ") {
			list = append(list, w)
		}
	}
	return list
}

func (r *rig) wantWrites(want ...string) {
	r.t.Helper()
	if got := r.writes(); !slices.Equal(got, want) {
		r.t.Errorf("writes are %q, want %q", got, want)
	}
}

func (r *rig) eventually(what string, happens func() bool) {
	r.t.Helper()
	err := wait.PollUntilContextTimeout(r.t.Context(), time.Millisecond, patience, true, func(context.Context) (bool, error) {
		return happens(), nil
	})
	if err != nil {
		r.t.Fatalf("waited for %s: %v", what, err)
	}
}

func (r *rig) dial(config *tls.Config) error {
	conn, err := tls.Dial("tcp", r.address, config)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	// With TLS 1.3 a client hears of its refusal only when it reads.
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}
