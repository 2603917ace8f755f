// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func cluster() *fake.Clientset {
	config := DefaultConfig()
	return fake.NewClientset(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: config.Namespace, Name: config.Secret}},
		&admissionregistrationv1.MutatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: config.WebhookConfiguration, ResourceVersion: "1"},
			Webhooks:   []admissionregistrationv1.MutatingWebhook{{Name: "a"}, {Name: "b"}},
		},
	)
}

func shown(t *testing.T, client *fake.Clientset) pair {
	t.Helper()
	config := DefaultConfig()
	secret, err := client.CoreV1().Secrets(config.Namespace).Get(t.Context(), config.Secret, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pair{secret.Data["tls.crt"], secret.Data["tls.key"], secret.Data["ca.crt"]}
}

func trusted(t *testing.T, client *fake.Clientset) []byte {
	t.Helper()
	configuration, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), "moorage-webhook", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	first := configuration.Webhooks[0].ClientConfig.CABundle
	if !bytes.Equal(first, configuration.Webhooks[1].ClientConfig.CABundle) {
		t.Fatal("two webhooks trust different authorities")
	}
	return first
}

func accepts(t *testing.T, bundle []byte, server pair, now time.Time) {
	t.Helper()
	loaded, err := tls.X509KeyPair(server.certificate, server.key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		t.Fatal("the bundle has no certificate")
	}
	for _, name := range []string{"moorage-webhook.moorage-system.svc", "moorage-webhook.moorage-system.svc.cluster.local"} {
		if _, err := loaded.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: now}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func ensure(t *testing.T, client *fake.Clientset, now time.Time) {
	t.Helper()
	if err := Ensure(t.Context(), client, DefaultConfig(), now); err != nil {
		t.Fatal(err)
	}
}

func TestTheCertificateIsMadeOnceAndRenewedInTime(t *testing.T) {
	client, config := cluster(), DefaultConfig()
	ensure(t, client, start)
	first := shown(t, client)
	accepts(t, trusted(t, client), first, start)

	late := start.Add(config.Duration - config.RenewBefore - time.Minute)
	ensure(t, client, late)
	if again := shown(t, client); !bytes.Equal(again.certificate, first.certificate) {
		t.Error("it is renewed before it is time")
	}

	due := start.Add(config.Duration - config.RenewBefore)
	ensure(t, client, due)
	second := shown(t, client)
	if bytes.Equal(second.certificate, first.certificate) || bytes.Equal(second.key, first.key) {
		t.Error("it is not renewed in time, or with the same key")
	}
	// Pods that have not heard of it yet still show the first certificate.
	accepts(t, trusted(t, client), first, due)
	accepts(t, trusted(t, client), second, due)

	// A certificate that has ended is not trusted for ever.
	ensure(t, client, due.Add(config.Duration-config.RenewBefore))
	if n := bytes.Count(trusted(t, client), []byte("BEGIN CERTIFICATE")); n != 2 {
		t.Errorf("%d authorities are trusted, want 2", n)
	}
}

func TestTheAuthorityIsTrustedBeforeTheCertificateIsShown(t *testing.T) {
	client := cluster()
	ensure(t, client, start)
	var order []string
	for _, action := range client.Actions() {
		if verb := action.GetVerb(); verb != "get" {
			order = append(order, verb+" "+action.GetResource().Resource)
		}
	}
	if !slices.Equal(order, []string{"patch mutatingwebhookconfigurations", "update secrets"}) {
		t.Errorf("the writes are %v", order)
	}

	client = cluster()
	client.PrependReactor("patch", "mutatingwebhookconfigurations", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("no")
	})
	if err := Ensure(t.Context(), client, DefaultConfig(), start); err == nil {
		t.Fatal("a refused write is no error")
	}
	if len(shown(t, client).certificate) > 0 {
		t.Error("a certificate is shown that nobody trusts")
	}
}

func TestWhatIsBrokenIsMadeAgain(t *testing.T) {
	for name, breakIt := range map[string]func(*corev1.Secret){
		"no key":            func(s *corev1.Secret) { delete(s.Data, "tls.key") },
		"not PEM":           func(s *corev1.Secret) { s.Data["tls.crt"] = []byte("x") },
		"another authority": func(s *corev1.Secret) { s.Data["ca.crt"] = nil },
	} {
		t.Run(name, func(t *testing.T) {
			client, config := cluster(), DefaultConfig()
			ensure(t, client, start)
			secrets := client.CoreV1().Secrets(config.Namespace)
			secret, err := secrets.Get(t.Context(), config.Secret, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			breakIt(secret)
			if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			ensure(t, client, start)
			accepts(t, trusted(t, client), shown(t, client), start)
		})
	}
}

func TestTheBundleIsPutBack(t *testing.T) {
	client := cluster()
	ensure(t, client, start)
	configurations := client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	configuration, err := configurations.Get(t.Context(), "moorage-webhook", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	configuration.Webhooks[0].ClientConfig.CABundle, configuration.Webhooks[1].ClientConfig.CABundle = nil, nil
	if _, err := configurations.Update(t.Context(), configuration, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	ensure(t, client, start)
	accepts(t, trusted(t, client), shown(t, client), start)
}

func TestTheCommandSaysWhatIsWrong(t *testing.T) {
	for want, args := range map[string][]string{
		"--secret is missing": {"--secret="},
		"must be above":       {"--duration=1h", "--renew-before=2h"},
	} {
		command := NewCommand()
		command.SetArgs(args)
		if err := command.Execute(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: the error is %v, want it to say %q", args, err, want)
		}
	}
}
