// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

const pause = time.Second

const largestAnswer = 1 << 20

// Run looks until everything works, and reports each success; after the timeout its error names the faults.
func Run(ctx context.Context, client kubernetes.Interface, config Config, out io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, config.Timeout, fmt.Errorf("not within %s", config.Timeout))
	defer cancel()
	for _, name := range config.Leases {
		lease := &renewal{client: client, namespace: config.Namespace, name: name}
		if err := await(ctx, "somebody leads "+name, lease.look, out); err != nil {
			return err
		}
	}
	return await(ctx, "the webhook stamps pods", func(ctx context.Context) error { return stamps(ctx, client, config) }, out)
}

func await(ctx context.Context, what string, look func(context.Context) error, out io.Writer) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, pause, true, func(ctx context.Context) (bool, error) {
		last = look(ctx)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, errors.Join(context.Cause(ctx), last))
	}
	_, err = fmt.Fprintln(out, what)
	return err
}

// A change of renewTime is a renewal: no two clocks are compared.
type renewal struct {
	client          kubernetes.Interface
	namespace, name string
	first           *metav1.MicroTime
}

func (r *renewal) look(ctx context.Context) error {
	lease, err := r.client.CoordinationV1().Leases(r.namespace).Get(ctx, r.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	switch {
	case lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" || lease.Spec.RenewTime == nil:
		return errors.New("nobody holds its Lease")
	case r.first == nil:
		r.first = lease.Spec.RenewTime
	}
	if lease.Spec.RenewTime.Equal(r.first) {
		return fmt.Errorf("%s holds its Lease, and has not renewed it while it was looked at", *lease.Spec.HolderIdentity)
	}
	return nil
}

func stamps(ctx context.Context, client kubernetes.Interface, config Config) error {
	configuration, err := client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, config.WebhookConfiguration, metav1.GetOptions{})
	if err != nil {
		return err
	}
	trusted := x509.NewCertPool()
	for _, w := range configuration.Webhooks {
		trusted.AppendCertsFromPEM(w.ClientConfig.CABundle)
	}
	body, err := review()
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, config.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	web := &http.Client{Transport: &http.Transport{
		Proxy:           http.ProxyFromEnvironment, // as the API server's client
		TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true,
	}}
	response, err := web.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, largestAnswer))
	if err != nil {
		return err
	}
	var answer admissionv1.AdmissionReview
	if response.StatusCode != http.StatusOK || json.Unmarshal(raw, &answer) != nil || answer.Response == nil {
		return fmt.Errorf("it answers %s, and no review", response.Status)
	}
	if !answer.Response.Allowed || len(answer.Response.Patch) == 0 {
		return errors.New("it admits a pod with a volume as it is, or refuses it")
	}
	return nil
}

func review() ([]byte, error) {
	pod, err := json.Marshal(&corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "check", Namespace: "check"},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "check", Image: "check"}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}},
		},
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(&admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "check", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
			Namespace: "check", Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: pod},
		},
	})
}
