// SPDX-License-Identifier: Apache-2.0

package check

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/moorage-dev/moorage/webhook"
)

func configured(server *httptest.Server) *admissionregistrationv1.MutatingWebhookConfiguration {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "moorage-webhook"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: ca}}}}
}

func files(t *testing.T, server *httptest.Server) (certificate, key string) {
	t.Helper()
	pair := server.TLS.Certificates[0]
	raw, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key = filepath.Join(t.TempDir(), "tls.crt"), filepath.Join(t.TempDir(), "tls.key")
	if err := errors.Join(
		os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}), 0o600),
		os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

// The test asks the webhook over TLS: it stamps the pod of the question.
func TestTheWebhookIsAsked(t *testing.T) {
	plain := httptest.NewTLSServer(http.NotFoundHandler())
	defer plain.Close()
	certificate, key := files(t, plain)
	served, err := webhook.New(webhook.Config{Listen: ":8443", SchedulerName: "moorage-scheduler", CertFile: certificate, KeyFile: key})
	if err != nil {
		t.Fatal(err)
	}
	stamping := httptest.NewTLSServer(served.Handler())
	defer stamping.Close()
	idle := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"response":{"allowed":true}}`)
	}))
	defer idle.Close()
	distrusted := configured(stamping)
	distrusted.Webhooks[0].ClientConfig.CABundle = nil
	for name, c := range map[string]struct {
		server        *httptest.Server
		configuration *admissionregistrationv1.MutatingWebhookConfiguration
		says          string
	}{
		"it stamps":           {stamping, configured(stamping), ""},
		"nobody trusts it":    {stamping, distrusted, "certificate"},
		"it leaves pods be":   {idle, configured(idle), "as it is"},
		"something else":      {plain, configured(plain), "404"},
		"it is not there yet": {stamping, &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "other"}}, "not found"},
	} {
		config := Config{WebhookConfiguration: "moorage-webhook", URL: c.server.URL + "/mutate/pod"}
		err := stamps(t.Context(), fake.NewClientset(c.configuration), config)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

func TestALeaseIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		gets := 0
		client.PrependReactor("get", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			gets++
			at := metav1.NewMicroTime(time.Unix(1000, 0))
			lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: new("pod-a"), RenewTime: &at}}
			switch {
			case gets == 1:
				lease.Spec.HolderIdentity = new("")
			case gets > 5:
				*lease.Spec.RenewTime = metav1.NewMicroTime(time.Unix(1002, 0))
			}
			return true, lease, nil
		})
		lease := &renewal{client: client, namespace: "n", name: "moorage-controller"}
		var out strings.Builder
		if err := await(t.Context(), "somebody leads", lease.look, &out); err != nil || gets != 6 || out.String() != "somebody leads\n" {
			t.Errorf("after %d looks: %v, %q", gets, err, out.String())
		}
		err := Run(t.Context(), fake.NewClientset(), Config{Namespace: "n", Leases: []string{"moorage-controller"}, Timeout: time.Minute}, io.Discard)
		if err == nil || !strings.Contains(err.Error(), "somebody leads moorage-controller: not within 1m0s") {
			t.Errorf("nobody leads, and the answer is %v", err)
		}
	})
}
