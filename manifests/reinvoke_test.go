// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/testcerts"
	webhooktesting "k8s.io/apiserver/pkg/admission/plugin/webhook/testing"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/webhook/pod"
)

// The API server asks a webhook again only if it has asked it before.
func TestLaterWebhookAddsAClaim(t *testing.T) {
	for name, volumes := range map[string][]corev1.Volume{
		"a pod without volumes": nil,
		"a pod with a claim":    {claim("own")},
	} {
		t.Run(name, func(t *testing.T) {
			in := podWith("", volumes...)
			in.Annotations = nil
			in.Spec.SchedulerName = corev1.DefaultSchedulerName
			admit(t, in)
			if want := placeholder(t, in); in.Spec.SchedulerName != v1alpha1.SchedulerName || in.Annotations[v1alpha1.AnnotationVolumeStatus] != want {
				t.Errorf("the pod has scheduler %s and annotations %v, want %s and the placeholder %s",
					in.Spec.SchedulerName, in.Annotations, v1alpha1.SchedulerName, want)
			}
		})
	}
}

func admit(t *testing.T, in *corev1.Pod) {
	t.Helper()
	server := webhooktesting.NewTestServerWithHandler(t, func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		var asked corev1.Pod
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		} else if err := json.Unmarshal(review.Request.Object.Raw, &asked); err != nil {
			t.Error(err)
		}
		patch := addClaim(&asked)
		if r.URL.Path == "/moorage" {
			var err error
			if patch, err = pod.Mutate(&asked, v1alpha1.SchedulerName); err != nil {
				t.Error(err)
			}
		}
		answer := admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}}
		if len(patch) > 0 {
			answer.Response.Patch, _ = json.Marshal(patch)
			answer.Response.PatchType = new(admissionv1.PatchTypeJSONPatch)
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	})
	server.StartTLS()
	t.Cleanup(server.Close)
	base, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	var configuration admissionregistrationv1.MutatingWebhookConfiguration
	find(t, "webhook.yaml", "MutatingWebhookConfiguration", "moorage-webhook", &configuration)
	ours := configuration.Webhooks[0]
	ours.NamespaceSelector, ours.ObjectSelector = &metav1.LabelSelector{}, &metav1.LabelSelector{}
	later := *ours.DeepCopy()
	later.Name, later.MatchConditions = "later.example.com", nil
	for path, hook := range map[string]*admissionregistrationv1.MutatingWebhook{"moorage": &ours, "later": &later} {
		hook.ClientConfig = admissionregistrationv1.WebhookClientConfig{URL: new(base.JoinPath(path).String()), CABundle: testcerts.CACert}
	}
	dispatcher := newDispatcher(t, base, ours, later)
	attributes := admission.NewAttributesRecord(in, nil, corev1.SchemeGroupVersion.WithKind("Pod"), "shop", in.Name,
		pods, "", admission.Create, &metav1.CreateOptions{}, false, &user.DefaultInfo{Name: tenant})
	for range 2 {
		if err := dispatcher.Admit(t.Context(), attributes, webhooktesting.NewObjectInterfacesForTest()); err != nil {
			t.Fatal(err)
		}
		if !attributes.GetReinvocationContext().ShouldReinvoke() {
			return
		}
		attributes.GetReinvocationContext().SetIsReinvoke()
	}
}

func newDispatcher(t *testing.T, base *url.URL, hooks ...admissionregistrationv1.MutatingWebhook) *mutating.Plugin {
	t.Helper()
	client, informers := webhooktesting.NewFakeMutatingDataSource("shop", hooks, t.Context().Done())
	dispatcher, err := mutating.NewMutatingWebhook(nil)
	if err != nil {
		t.Fatal(err)
	}
	dispatcher.SetAuthenticationInfoResolverWrapper(webhooktesting.Wrapper(webhooktesting.NewAuthenticationInfoResolver(new(int32))))
	dispatcher.SetServiceResolver(webhooktesting.NewServiceResolver(*base))
	dispatcher.SetExternalKubeClientSet(client)
	dispatcher.SetExternalKubeInformerFactory(informers)
	if err := dispatcher.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}
	informers.Start(t.Context().Done())
	informers.WaitForCacheSync(t.Context().Done())
	return dispatcher
}

func addClaim(to *corev1.Pod) []pod.Operation {
	added := claim("added")
	switch n := len(to.Spec.Volumes); {
	case n == 0:
		return []pod.Operation{{Op: "add", Path: "/spec/volumes", Value: []corev1.Volume{added}}}
	case to.Spec.Volumes[n-1].Name != added.Name:
		return []pod.Operation{{Op: "add", Path: "/spec/volumes/-", Value: added}}
	}
	return nil
}
