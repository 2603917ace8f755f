// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/controller/attacher/driver"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/lead"
	"github.com/moorage-dev/moorage/test/apitest"
)

const patience = 20 * time.Second

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

type running struct {
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // once it has ended
}

func sidecar(t *testing.T, server *apitest.Server, c Config) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		r.err = run(ctx, c, server.Kube, server.Kube)
	}()
	t.Cleanup(func() { _ = r.stop() })
	return r
}

func (r *running) stop() error {
	r.cancel()
	return r.wait()
}

func (r *running) wait() error {
	select {
	case <-r.ended:
		return r.err
	case <-time.After(patience):
		return errors.New("the attacher does not end")
	}
}

func testConfig(d *socketDriver) Config {
	c := DefaultConfig()
	c.Address, c.RetryFirst, c.Timeout = d.path, 5*time.Millisecond, 2*time.Second
	return c
}

func cluster(t *testing.T, volumes int) *apitest.Server {
	t.Helper()
	server := apitest.Start(t)
	for _, node := range []string{"node1", "node2"} {
		server.Put("csinodes", &storagev1.CSINode{
			ObjectMeta: metav1.ObjectMeta{Name: node},
			Spec:       storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: testDriver, NodeID: "id-" + node}}},
		})
	}
	for i := range volumes {
		server.Put("persistentvolumes", &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pv%d", i)},
			Spec: corev1.PersistentVolumeSpec{
				AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: testDriver, VolumeHandle: fmt.Sprintf("h%d", i)}},
			},
		})
	}
	return server
}

func attach(t *testing.T, server *apitest.Server, name, pv, node string, stamped bool) {
	t.Helper()
	va := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: testDriver, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}},
	}
	if stamped {
		va.Finalizers = []string{convert.AttacherFinalizer(testDriver)}
		va.Annotations = map[string]string{convert.AnnotationNodeID: "id-" + node}
	}
	if _, err := server.Kube.StorageV1().VolumeAttachments().Create(context.Background(), va, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func detach(t *testing.T, server *apitest.Server, name string) {
	t.Helper()
	if err := server.Kube.StorageV1().VolumeAttachments().Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func read(server *apitest.Server, name string) (va storagev1.VolumeAttachment, ok bool) {
	ok = server.Get("volumeattachments", "", name, &va)
	return va, ok
}

func attached(server *apitest.Server, name string) func() bool {
	return func() bool {
		va, ok := read(server, name)
		return ok && va.Status.Attached
	}
}

func gone(server *apitest.Server, name string) func() bool {
	return func() bool {
		_, ok := read(server, name)
		return !ok
	}
}

func TestRun(t *testing.T) {
	server, driver := cluster(t, 1), newSocketDriver(t)
	r := sidecar(t, server, testConfig(driver))
	attach(t, server, "va1", "pv0", "node1", true)
	driver.start(t) // long after the attacher
	eventually(t, "attached", attached(server, "va1"))
	va, _ := read(server, "va1")
	if va.Status.AttachmentMetadata["device"] != "h0@id-node1" {
		t.Errorf("the publish context is %v", va.Status.AttachmentMetadata)
	}
	server.Forget()
	detach(t, server, "va1")
	eventually(t, "gone", gone(server, "va1"))
	attach(t, server, "va2", "pv0", "node2", true)
	eventually(t, "attached at the other node", attached(server, "va2"))

	want := []string{
		"delete volumeattachments va1", "patch volumeattachments va1",
		"create volumeattachments va2", "patch volumeattachments/status va2",
	}
	if got := server.Writes(); !slices.Equal(got, want) {
		t.Errorf("the writes are %q, want one a detach and one an attach: %q", got, want)
	}
	calls := slices.DeleteFunc(driver.heard(), func(c string) bool { return c == "list" })
	if want := []string{"publish h0 id-node1", "unpublish h0 id-node1", "publish h0 id-node2"}; !slices.Equal(calls, want) {
		t.Errorf("the calls are %q, want %q", calls, want)
	}
	var pv corev1.PersistentVolume
	if server.Get("persistentvolumes", "", "pv0", &pv); !slices.Contains(pv.Finalizers, convert.AttacherFinalizer(testDriver)) {
		t.Errorf("the PersistentVolume has the finalizers %v", pv.Finalizers)
	}
	if err := r.stop(); err != nil {
		t.Errorf("the attacher ended with %v", err)
	}
}

// A stamped volume costs one write to attach and one to detach.
func TestManyAtOnce(t *testing.T) {
	const volumes = 100
	server, driver := cluster(t, volumes), newSocketDriver(t)
	driver.start(t)
	sidecar(t, server, testConfig(driver))
	for i := range volumes {
		attach(t, server, fmt.Sprintf("va%d", i), fmt.Sprintf("pv%d", i), "node1", i%2 == 0)
	}
	for i := range volumes {
		eventually(t, "attached", attached(server, fmt.Sprintf("va%d", i)))
	}
	for i := range volumes {
		detach(t, server, fmt.Sprintf("va%d", i))
	}
	for i := range volumes {
		eventually(t, "gone", gone(server, fmt.Sprintf("va%d", i)))
	}
	calls := map[string]int{}
	for _, call := range driver.heard() {
		calls[call]++
	}
	delete(calls, "list")
	for call, n := range calls {
		if n != 1 {
			t.Errorf("%s was called %d times", call, n)
		}
	}
	if len(calls) != 2*volumes {
		t.Errorf("%d calls for %d volumes, want one of each kind", len(calls), volumes)
	}
	writes, want := map[string]int{}, map[string]int{}
	for _, write := range server.Writes() {
		writes[write]++
	}
	for i := range volumes {
		want[fmt.Sprintf("patch persistentvolumes pv%d", i)] = 1
		want[fmt.Sprintf("create volumeattachments va%d", i)] = 1
		want[fmt.Sprintf("patch volumeattachments/status va%d", i)] = 1
		want[fmt.Sprintf("delete volumeattachments va%d", i)] = 1
		want[fmt.Sprintf("patch volumeattachments va%d", i)] = 1 + i%2
	}
	if !maps.Equal(writes, want) {
		t.Errorf("there were the writes\n%v, want\n%v", writes, want)
	}
}

func TestDriverComesAndGoes(t *testing.T) {
	server, driver := cluster(t, 2), newSocketDriver(t)
	driver.start(t)
	driver.change(func(d *socketDriver) {
		d.publish = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	})
	r := sidecar(t, server, testConfig(driver))
	attach(t, server, "va1", "pv0", "node1", false)
	eventually(t, "publish is called", func() bool { return slices.Contains(driver.heard(), "publish h0 id-node1") })
	driver.stop() // in the middle of the call
	driver.change(func(d *socketDriver) { d.publish = nil })
	attach(t, server, "va2", "pv1", "node1", false)
	driver.start(t)
	eventually(t, "attached after all", attached(server, "va1"))
	eventually(t, "attached", attached(server, "va2"))

	driver.stop() // and comes back as another
	driver.change(func(d *socketDriver) {
		d.can = []csi.ControllerServiceCapability_RPC_Type{csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME}
	})
	driver.start(t)
	if err := r.wait(); !errors.Is(err, errDriverChanged) {
		t.Errorf("the attacher ended with %v", err)
	}
}

func TestDriverHangs(t *testing.T) {
	server, driver := cluster(t, 2), newSocketDriver(t)
	ended := noLeak(t)
	driver.start(t)
	release := make(chan struct{})
	driver.change(func(d *socketDriver) {
		d.publish = func(context.Context) error { <-release; return status.Error(codes.Internal, "late") } // deaf to its context
	})
	c := testConfig(driver)
	c.Timeout = 50 * time.Millisecond
	r := sidecar(t, server, c)
	attach(t, server, "va1", "pv0", "node1", false)
	eventually(t, "the timeout is told", func() bool {
		va, _ := read(server, "va1")
		e := va.Status.AttachError
		return e != nil && e.ErrorCode != nil && codes.Code(*e.ErrorCode) == codes.DeadlineExceeded
	})
	detach(t, server, "va1")
	eventually(t, "detached all the same", gone(server, "va1"))
	if err := r.stop(); err != nil {
		t.Errorf("the attacher ended with %v", err)
	}
	close(release)
	driver.stop()
	ended()
}

func TestOneOfTwoWorks(t *testing.T) {
	server, driver := cluster(t, 2), newSocketDriver(t)
	driver.start(t)
	c := testConfig(driver)
	c.Election = Election{Enabled: true, Namespace: "kube-system", LeaseDuration: 2 * time.Second, RenewDeadline: time.Second, RetryPeriod: 20 * time.Millisecond, Labels: map[string]string{"a": "b"}}
	first := sidecar(t, server, c)
	attach(t, server, "va1", "pv0", "node1", false)
	eventually(t, "attached by the first", attached(server, "va1"))
	lease := func() (l coordinationv1.Lease) {
		server.Get("leases", "kube-system", "external-attacher-leader-disk-example-com", &l)
		return l
	}
	if l := lease(); l.Spec.HolderIdentity == nil || l.Labels["a"] != "b" {
		t.Fatalf("the Lease is %+v", l)
	}
	answer := make(chan struct{})
	driver.change(func(d *socketDriver) { // the first is told to stop during a call
		d.publish = func(context.Context) error { <-answer; return nil }
	})
	attach(t, server, "va2", "pv1", "node1", false)
	eventually(t, "publish is called", func() bool { return slices.Contains(driver.heard(), "publish h1 id-node1") })
	first.cancel()
	second := sidecar(t, server, c)
	if va, _ := read(server, "va2"); va.Status.Attached || *lease().Spec.HolderIdentity == "" {
		t.Error("the lease was given up with a call under way")
	}
	close(answer)
	if err := first.wait(); err != nil {
		t.Fatalf("the first ended with %v", err)
	}
	eventually(t, "attached", attached(server, "va2"))
	detach(t, server, "va2")
	eventually(t, "detached by the second", gone(server, "va2"))
	if err := second.stop(); err != nil {
		t.Errorf("the second ended with %v", err)
	}
}

func TestLeaseLost(t *testing.T) {
	server, driver := cluster(t, 1), newSocketDriver(t)
	driver.start(t)
	c := testConfig(driver)
	c.Election = Election{Enabled: true, Namespace: "kube-system", LeaseDuration: 400 * time.Millisecond, RenewDeadline: 200 * time.Millisecond, RetryPeriod: 20 * time.Millisecond}
	r := sidecar(t, server, c)
	attach(t, server, "va1", "pv0", "node1", false)
	eventually(t, "attached", attached(server, "va1"))
	server.Intercept(func(r apitest.Request, serve func()) error {
		if strings.HasPrefix(r.Resource, "leases") {
			return errors.New("unreachable")
		}
		serve()
		return nil
	})
	if err := r.wait(); !errors.Is(err, lead.ErrLost) {
		t.Errorf("an attacher without its lease ended with %v", err)
	}
}

func TestMetricsAndHealth(t *testing.T) {
	server, driver := cluster(t, 1), newSocketDriver(t)
	driver.start(t)
	c := testConfig(driver)
	c.Listen = freeAddress(t)
	c.Election = Election{Enabled: true, Namespace: "kube-system", LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 20 * time.Millisecond}
	sidecar(t, server, c)
	attach(t, server, "va1", "pv0", "node1", false)
	eventually(t, "attached", attached(server, "va1"))
	body := ""
	eventually(t, "the metrics are there", func() bool {
		body = fetch(t, "http://"+c.Listen+"/metrics")
		return strings.Contains(body, `moorage_attacher_attachments{driver="disk.example.com"} 1`)
	})
	for _, line := range []string{
		`csi_sidecar_operations_seconds_count{driver_name="disk.example.com",grpc_status_code="OK",method_name="/csi.v1.Controller/ControllerPublishVolume"} 1`,
		`moorage_attacher_steps_total{driver="disk.example.com",result="ok",step="publish"} 1`,
		`moorage_attacher_calls_under_way{driver="disk.example.com"} 0`,
		`process_start_time_seconds`,
	} {
		if !strings.Contains(body, line) {
			t.Errorf("the metrics lack %s", line)
		}
	}
	asked := readText(t, "../../charts/moorage/files/alerts.yaml") + readText(t, "../../charts/moorage/files/dashboard.json")
	names := regexp.MustCompile(`\b(?:moorage_attacher|csi_sidecar)_[a-z_]+`).FindAllString(asked, -1)
	if len(names) < 5 {
		t.Errorf("the chart asks only for %v", names)
	}
	for _, name := range names {
		if !strings.Contains(body, "\n"+name+"{") {
			t.Errorf("the chart asks for %s, and the attacher does not measure it", name)
		}
	}
	if got := fetch(t, "http://"+c.Listen+leaderHealthPath); got != "ok" {
		t.Errorf("the leader's health is %q", got)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestListedElsewhere(t *testing.T) {
	server, driver := cluster(t, 2), newSocketDriver(t)
	driver.start(t)
	c := testConfig(driver)
	c.ReconcileSync = 20 * time.Millisecond
	sidecar(t, server, c)
	attach(t, server, "va1", "pv0", "node1", false)
	attach(t, server, "va2", "pv1", "node1", false)
	eventually(t, "attached", attached(server, "va1"))
	eventually(t, "attached", attached(server, "va2"))
	driver.change(func(d *socketDriver) { d.published["h0"], d.calls = nil, nil })
	eventually(t, "published again", func() bool { return slices.Contains(driver.heard(), "publish h0 id-node1") })
	if calls := driver.heard(); slices.Contains(calls, "publish h1 id-node1") {
		t.Errorf("the other volume was published again too: %q", calls)
	}
}

func TestLeaseGivenUpAfterALateRenewal(t *testing.T) {
	server, driver := cluster(t, 1), newSocketDriver(t)
	driver.start(t)
	c := testConfig(driver)
	c.Election = Election{Enabled: true, Namespace: "kube-system", LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 5 * time.Second}
	r := sidecar(t, server, c)
	attach(t, server, "va1", "pv0", "node1", false)
	eventually(t, "attached", attached(server, "va1"))
	name := "external-attacher-leader-disk-example-com"
	late := false
	server.Intercept(func(r apitest.Request, serve func()) error {
		if strings.HasPrefix(r.Resource, "leases") && strings.Contains(r.Body, `"leaseDurationSeconds":1,`) && !late {
			late = true // during the release
			var l coordinationv1.Lease
			if server.Get("leases", "kube-system", name, &l) {
				l.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
				server.Put("leases", &l)
			}
		}
		serve()
		return nil
	})
	if err := r.stop(); err != nil {
		t.Errorf("the attacher ended with %v", err)
	}
	var l coordinationv1.Lease
	if server.Get("leases", "kube-system", name, &l); !late || l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity != "" {
		t.Errorf("the Lease is %+v after a late renewal (%t)", l.Spec, late)
	}
}

func TestNothingBeginsWhileTheDriverIsAway(t *testing.T) {
	server, away := cluster(t, 1), newSocketDriver(t)
	away.start(t)
	ctx := t.Context()
	p := &process{config: testConfig(away), client: server.Kube, lost: make(chan struct{}, 1)}
	var err error
	p.driver, p.identity, err = driver.Connect(ctx, driver.Config{Address: away.path, Timeout: time.Second, Retry: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer p.driver.Close()
	p.metrics = newCollector(p.identity.Name, p.engine.Load)
	e, err := newEngine(ctx, p.engineConfig(func() bool { return true }))
	if err != nil {
		t.Fatal(err)
	}
	go p.driver.Watch(ctx, p.disconnected)
	go func() { _ = p.follow(ctx, e) }()
	paused := func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.paused
	}
	away.stop()
	eventually(t, "nothing begins any more", paused)
	away.start(t)
	eventually(t, "work goes on", func() bool { return !paused() })
}
