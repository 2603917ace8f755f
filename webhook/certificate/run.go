// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

// authorityKey is cert-manager's name too.
const authorityKey = "ca.crt"

// Ensure ensures that a certificate is valid for long enough, and that the API server trusts it. It is
// idempotent. A write by another client in between is an error; repeat the call then.
func Ensure(ctx context.Context, client kubernetes.Interface, config Config, now time.Time) error {
	secrets := client.CoreV1().Secrets(config.Namespace)
	secret, err := secrets.Get(ctx, config.Secret, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the Secret with the certificate: %w (the chart makes it, empty)", err)
	}
	shown := pair{secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey], secret.Data[authorityKey]}
	reason := due(shown, config.names(), now, config.RenewBefore)
	if reason == nil {
		klog.FromContext(ctx).Info("The certificate is good for now", "secret", klog.KObj(secret))
		return trust(ctx, client, config.WebhookConfiguration, shown.authority)
	}
	fresh, err := issue(config.names(), now, config.Duration)
	if err != nil {
		return err
	}
	fresh.authority = bundle(fresh.authority, shown.authority, now)
	if err := trust(ctx, client, config.WebhookConfiguration, fresh.authority); err != nil {
		return err
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey], secret.Data[authorityKey] = fresh.certificate, fresh.key, fresh.authority
	if _, err := secrets.Update(ctx, secret, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("write the Secret with the certificate: %w", err)
	}
	klog.FromContext(ctx).Info("Made a certificate", "secret", klog.KObj(secret), "because", reason.Error(), "until", now.Add(config.Duration))
	return nil
}

// trust covers every webhook of a configuration.
func trust(ctx context.Context, client kubernetes.Interface, name string, authorities []byte) error {
	configurations := client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	configuration, err := configurations.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read the webhook's configuration: %w", err)
	}
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	// The webhooks are named by their place in this version.
	patch := []operation{{"test", "/metadata/resourceVersion", configuration.ResourceVersion}}
	for i := range configuration.Webhooks {
		if !bytes.Equal(configuration.Webhooks[i].ClientConfig.CABundle, authorities) {
			patch = append(patch, operation{"add", fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", i), authorities})
		}
	}
	if len(patch) == 1 {
		return nil
	}
	raw, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encode the CA bundle: %w", err)
	}
	if _, err := configurations.Patch(ctx, name, types.JSONPatchType, raw, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("write the CA bundle of the webhook's configuration: %w", err)
	}
	return nil
}
