// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/bind"
	"github.com/moorage-dev/moorage/internal/connect"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/test/apitest"
)

// bindsAtOnce is a cluster with a pod that has no node, whose volume nobody else uses, and a
// controller that is asked to bind pods.
func bindsAtOnce(t *testing.T) *cluster {
	c := newCluster(t, 1, "n1", "n2")
	c.binds, c.metrics = &binds{}, report.NewMetrics(nil)
	c.disk("data")
	c.pod("db", "", "data", false)
	return c
}

// leadAndBind is leadAs, of a controller that is asked to bind pods.
func (c *cluster) leadAndBind(change func(*Config)) (stop func()) {
	c.t.Helper()
	return c.leadAs(1, func(config *Config) {
		config.Bind.Listen = "127.0.0.1:0"
		change(config)
	})
}

// ask asks the leader to bind a pod as it is now. It is asked again while it is taking over,
// or has not seen the pod.
func (c *cluster) ask(name, node string) (err error) {
	c.t.Helper()
	c.until("the leader has seen the pod", func() bool {
		leads := c.binds.leading()
		if leads == nil {
			return false
		}
		pod := c.getPod(name)
		err = leads.Bind(c.t.Context(), bind.Request{Pod: pod.UID, Version: pod.ResourceVersion, Node: node})
		return err == nil || !strings.Contains(err.Error(), "does not lead yet") && !strings.Contains(err.Error(), "has not seen")
	})
	return err
}

func (c *cluster) getPod(name string) *corev1.Pod {
	c.t.Helper()
	pod := &corev1.Pod{}
	if !c.Get("pods", "shop", name, pod) {
		c.t.Fatalf("pod %s is gone", name)
	}
	return pod
}

// A pod that nobody contends with is bound without a ticket, and its volume is attached.
func TestLeaderBindsAtOnce(t *testing.T) {
	c := bindsAtOnce(t)
	defer c.leadAndBind(func(*Config) {})()
	if err := c.ask("db", "n1"); err != nil {
		t.Fatal(err)
	}
	if node := c.getPod("db").Spec.NodeName; node != "n1" {
		t.Errorf("it is bound to %q", node)
	}
	c.until("its volume is attached", func() bool { return c.reported("data", "n1") })
	c.pod("other", "", "data", false)
	if err := c.ask("other", "n2"); !errors.Is(err, bind.ErrUseTicket) {
		t.Errorf("a pod that wants the same volume elsewhere: %v", err)
	}
}

// One that is for another scheduler's profile is not bound.
func TestLeaderBindsForItsSchedulers(t *testing.T) {
	c := bindsAtOnce(t)
	defer c.leadAndBind(func(config *Config) { config.Bind.Schedulers = []string{"moorage-scheduler"} })()
	if err := c.ask("db", "n1"); !errors.Is(err, bind.ErrUseTicket) || c.getPod("db").Spec.NodeName != "" {
		t.Errorf("a pod of nobody: %v", err)
	}
	pod := c.getPod("db")
	pod.Name, pod.UID, pod.Spec.SchedulerName = "served", "uid-served", "moorage-scheduler"
	c.Put("pods", pod)
	if err := c.ask("served", "n1"); err != nil {
		t.Error(err)
	}
}

// After a leader that did not hand over, no pod is bound by an older version of it: what
// that leader has sent fails when it arrives. After one that did, pods stay as they are.
func TestTakeOverFencesPods(t *testing.T) {
	for _, clean := range []bool{false, true} {
		c := bindsAtOnce(t)
		c.clean = clean
		before := c.getPod("db").ResourceVersion
		stop := c.leadAndBind(func(*Config) {})
		after := c.getPod("db")
		if fenced := after.Annotations[v1alpha1.AnnotationBindFence] != ""; fenced == clean || (after.ResourceVersion == before) != clean {
			t.Errorf("after a clean end %t: fenced %t, version %s and then %s", clean, fenced, before, after.ResourceVersion)
		}
		stop()
	}
}

// The end of a term waits for the binds that are under way, and has no more begin.
func TestEndOfATermWaitsForBinds(t *testing.T) {
	c := bindsAtOnce(t)
	arrived, goOn := make(chan struct{}), make(chan struct{})
	c.Intercept(func(r apitest.Request, serve func()) error {
		if r.Resource == "pods/binding" {
			close(arrived)
			<-goOn
		}
		serve()
		return nil
	})
	stop := c.leadAndBind(func(*Config) {})
	asked, ended := make(chan error, 1), make(chan struct{})
	go func() { asked <- c.ask("db", "n1") }()
	<-arrived
	leads := c.binds.leading()
	go func() { defer close(ended); stop() }()
	c.until("nobody leads", func() bool { return c.binds.leading() == nil })
	c.until("no bind begins", func() bool {
		err := leads.Bind(t.Context(), bind.Request{Pod: "uid-db", Version: "1", Node: "n1"})
		return err != nil && strings.Contains(err.Error(), "does not lead")
	})
	select {
	case <-ended:
		t.Error("the term has ended with a bind under way")
	default:
	}
	close(goOn)
	if err := <-asked; err != nil {
		t.Error(err)
	}
	<-ended
}

// certificates are those of an authority: its own, and pairs that it has signed.
type certificates struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newCertificates(t *testing.T) *certificates {
	c := &certificates{t: t, dir: t.TempDir()}
	c.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test-ca"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	c.pair("ca", c.cert)
	return c
}

// pair stores a certificate and its key.
func (c *certificates) pair(name string, template *x509.Certificate) (certFile, keyFile string) {
	c.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	if c.key == nil {
		c.key = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, c.cert, key.Public(), c.key)
	if err != nil {
		c.t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		c.t.Fatal(err)
	}
	for suffix, block := range map[string]*pem.Block{".crt": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: raw}} {
		if err := os.WriteFile(filepath.Join(c.dir, name+suffix), pem.EncodeToMemory(block), 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
	return filepath.Join(c.dir, name+".crt"), filepath.Join(c.dir, name+".key")
}

// of is a pair for a name at 127.0.0.1.
func (c *certificates) of(name string) (certFile, keyFile string) {
	c.t.Helper()
	return c.pair(name, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
}

// Schedulers reach the leader over mutual TLS, and only those who may bind pods.
func TestSchedulersAskOverTLS(t *testing.T) {
	c := bindsAtOnce(t)
	own := newCertificates(t)
	kube := fake.NewClientset()
	kube.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		review.Status.Allowed = review.Spec.User == "scheduler"
		return true, review, nil
	})
	config := BindConfig{Listen: "127.0.0.1:0", ClientCAFile: filepath.Join(own.dir, "ca.crt")}
	config.CertFile, config.KeyFile = own.of("controller")
	opened, err := config.open("moorage-system", &connect.Clients{Write: kube})
	if err != nil {
		t.Fatal(err)
	}
	c.binds = opened
	go opened.serve(t.Context())
	ask := func(by *certificates, name string) error {
		cert, key := by.of(name)
		pod := c.getPod("db")
		client := bind.NewClient("https://"+opened.listener.Addr().String(), bind.Connect(filepath.Join(own.dir, "ca.crt"), cert, key), 30*time.Second)
		return client.Bind(t.Context(), bind.Request{Pod: pod.UID, Version: pod.ResourceVersion, Node: "n1"})
	}
	if err := ask(own, "scheduler"); !errors.Is(err, bind.ErrUseTicket) || !strings.Contains(err.Error(), "does not lead") {
		t.Errorf("before it leads: %v", err)
	}
	stop := c.leadAndBind(func(*Config) {})
	defer stop()
	c.until("it has seen the pod", func() bool { return c.observer.Snapshot().Pod("uid-db") != nil && opened.leading() != nil })
	if err := ask(own, "tenant"); !errors.Is(err, bind.ErrUseTicket) || !strings.Contains(err.Error(), `"tenant" may not create pods/binding`) {
		t.Errorf("who may not bind pods: %v", err)
	}
	if err := ask(newCertificates(t), "scheduler"); err == nil || c.getPod("db").Spec.NodeName != "" {
		t.Errorf("whom another authority calls a scheduler: %v", err)
	}
	c.until("a scheduler is heard", func() bool { return ask(own, "scheduler") == nil })
	if pod := c.getPod("db"); pod.Spec.NodeName != "n1" || pod.UID != types.UID("uid-db") {
		t.Errorf("it is bound to %q", pod.Spec.NodeName)
	}
}

func TestBindConfig(t *testing.T) {
	full := BindConfig{Listen: ":8446", CertFile: "cert", KeyFile: "key", ClientCAFile: "ca", Service: "moorage-controller-bind", Advertise: "10.0.0.1"}
	for name, test := range map[string]struct {
		change func(*BindConfig)
		says   string
	}{
		"complete":       {func(*BindConfig) {}, ""},
		"one replica":    {func(c *BindConfig) { c.Service, c.Advertise = "", "" }, ""},
		"off":            {func(c *BindConfig) { *c = BindConfig{} }, ""},
		"no port":        {func(c *BindConfig) { c.Listen = "localhost" }, "--bind-listen"},
		"no certificate": {func(c *BindConfig) { c.CertFile = "" }, "--tls-cert-file"},
		"no key":         {func(c *BindConfig) { c.KeyFile = "" }, "--tls-private-key-file"},
		"no authorities": {func(c *BindConfig) { c.ClientCAFile = "" }, "--client-ca-file"},
		"no address":     {func(c *BindConfig) { c.Advertise = "" }, "--advertise-address"},
	} {
		config := DefaultConfig()
		config.Bind = full
		test.change(&config.Bind)
		if err := config.Validate(); (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", name, err, test.says)
		}
	}
}
