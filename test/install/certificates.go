// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/audit"
)

var webhookPods = labels.Set{"app.kubernetes.io/name": "moorage", "app.kubernetes.io/component": "webhook"}.AsSelector()

func (s *story) whileStamping(ctx context.Context, do func(context.Context) error) error {
	name, err := s.namespace(ctx, "stamping", map[string]string{sandbox.EnforceLabel: "true"})
	if err != nil {
		return err
	}
	creating, stop := context.WithCancel(ctx)
	defer stop()
	type outcome struct {
		created int
		err     error
	}
	ended := make(chan outcome, 1)
	go func() {
		var o outcome
		for ; creating.Err() == nil && o.err == nil; o.created++ {
			if err := s.stamped(ctx, name); err != nil {
				o.err = fmt.Errorf("pod %d, at %s: %w", o.created+1, time.Now().Format("15:04:05.000"), err)
			}
			select {
			case <-creating.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
		ended <- o
	}()
	err = do(ctx)
	stop()
	o := <-ended
	fmt.Printf("     %d pods were created meanwhile\n", o.created)
	return errors.Join(err, o.err, s.client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{}))
}

// cert-manager renews by itself every 60 days.
func (s *story) renewCertificates(ctx context.Context) error {
	before, err := s.caBundle(ctx)
	if err != nil {
		return err
	}
	return s.whileStamping(ctx, func(ctx context.Context) error {
		for _, name := range []string{"moorage-webhook-ca", "moorage-webhook"} {
			if err := s.renew(ctx, name); err != nil {
				return err
			}
		}
		if err := s.newCertificateShown(ctx); err != nil {
			return err
		}
		return until(ctx, "the new authority is injected", func(ctx context.Context) error {
			after, err := s.caBundle(ctx)
			if err == nil && bytes.Equal(before, after) {
				err = errors.New("the CA bundle is the old one")
			}
			return err
		})
	})
}

func (s *story) caBundle(ctx context.Context) ([]byte, error) {
	configuration, err := s.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, "moorage-webhook", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return configuration.Webhooks[0].ClientConfig.CABundle, nil
}

func (s *story) renew(ctx context.Context, name string) error {
	certificates := s.dynamic.Resource(schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: "certificates"}).Namespace(namespace)
	certificate, err := certificates.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	revision, _, _ := unstructured.NestedInt64(certificate.Object, "status", "revision")
	conditions, _, _ := unstructured.NestedSlice(certificate.Object, "status", "conditions")
	conditions = append(conditions, map[string]any{
		"type": "Issuing", "status": "True", "reason": "ManuallyTriggered", "message": "renewed by a test",
		"lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
	})
	if err := unstructured.SetNestedSlice(certificate.Object, conditions, "status", "conditions"); err != nil {
		return err
	}
	if _, err := certificates.UpdateStatus(ctx, certificate, metav1.UpdateOptions{}); err != nil {
		return err
	}
	return until(ctx, "certificate "+name+" is renewed", func(ctx context.Context) error {
		certificate, err := certificates.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		now, _, _ := unstructured.NestedInt64(certificate.Object, "status", "revision")
		if now <= revision {
			return fmt.Errorf("it has revision %d", now)
		}
		return nil
	})
}

// A kubelet looks at the Secrets of a running pod every 60 to 90 s.
func (s *story) newCertificateShown(ctx context.Context) error {
	secret, err := s.client.CoreV1().Secrets(namespace).Get(ctx, "moorage-webhook-tls", metav1.GetOptions{})
	if err != nil {
		return err
	}
	want, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
	if err != nil {
		return err
	}
	return untilWithin(ctx, 2*sandbox.Patience, "the new certificate is shown", func(ctx context.Context) error {
		pods := s.pods.Pods(webhookPods)
		for pod, ip := range pods {
			conn, err := tls.Dial("tcp", net.JoinHostPort(ip, "8443"), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // it is looked at here
			if err != nil {
				return err
			}
			shown := conn.ConnectionState().PeerCertificates[0]
			_ = conn.Close() // it was only to look at
			if !shown.Equal(want.Leaf) {
				return fmt.Errorf("pod %s shows number %s", pod.Name, shown.SerialNumber)
			}
		}
		if len(pods) == 0 {
			return errors.New("the webhook has no pods")
		}
		return nil
	})
}

func (s *story) ownCertificates(ctx context.Context) error {
	if err := s.takeBack(ctx); err != nil {
		return err
	}
	// cert-manager leaves its Secrets: the job takes this one over.
	if _, err := s.client.CoreV1().Secrets(namespace).Get(ctx, "moorage-webhook-tls", metav1.GetOptions{}); err != nil {
		return err
	}
	reader, err := audit.From(s.cluster.AuditLog())
	if err != nil {
		return err
	}
	s.audit = reader
	values := []string{"--set", "image.registry=" + registry, "--set", "certManager.enabled=false", "--set", "webhook.certificate.duration=2400h"}
	if err := s.installChart(ctx, s.chart, append(values, "--set", "webhook.certificate.renewBefore=24h")...); err != nil {
		return err
	}
	if err := s.awaitMoorage(ctx); err != nil {
		return err
	}
	before, err := s.caBundle(ctx)
	if err != nil {
		return err
	}
	err = s.whileStamping(ctx, func(ctx context.Context) error {
		// Due at once: each release has a Job that looks.
		args := append([]string{"upgrade", release, s.chart, "--namespace", namespace}, values...)
		if _, err := s.helmCommand(ctx, append(args, "--set", "webhook.certificate.renewBefore=2399h")...); err != nil {
			return err
		}
		err := until(ctx, "the job has renewed the certificate", func(ctx context.Context) error {
			after, err := s.caBundle(ctx)
			if err == nil && bytes.Equal(before, after) {
				err = errors.New("the CA bundle is the old one")
			}
			return err
		})
		if err != nil {
			return err
		}
		return s.newCertificateShown(ctx)
	})
	if err != nil {
		return err
	}
	return s.rightsOf(ctx, func(account string) bool { return account == "moorage-certificate" })
}
