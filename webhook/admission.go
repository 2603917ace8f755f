// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	strictjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/moorage-dev/moorage/internal/serving"
	"github.com/moorage-dev/moorage/webhook/pod"
)

// maxBodyBytes bounds a request. The API server takes objects of up to 3 MiB,
// and a review can carry an object and the one before it.
const maxBodyBytes = 8 << 20

// mutatePod answers /mutate/pod. Every answer that is a review admits the pod:
// what must not pass is denied by admission policies.
func (s *Server) mutatePod(w http.ResponseWriter, r *http.Request) {
	review, err := readReview(w, r)
	if err != nil {
		serving.WriteError(w, name, err)
		return
	}
	response, err := s.respond(review.Request)
	if err != nil {
		serving.WriteError(w, name, err)
		return
	}
	serving.WriteJSON(w, http.StatusOK, admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Response: response,
	})
}

// respond decides one review.
func (s *Server) respond(request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	response := &admissionv1.AdmissionResponse{UID: request.UID, Allowed: true}
	pods := metav1.GroupVersionResource{Version: "v1", Resource: "pods"}
	if request.Resource != pods || request.SubResource != "" {
		return nil, serving.BadRequest("the request is for %s %s/%s: send only v1 pods to %s, see the rules of the MutatingWebhookConfiguration",
			request.Resource.String(), request.Resource.Resource, request.SubResource, pathMutatePod)
	}
	if request.Operation != admissionv1.Create {
		return response, nil
	}
	var created corev1.Pod
	if err := strictjson.Unmarshal(request.Object.Raw, &created); err != nil {
		return nil, serving.BadRequest("request.object is not a v1 Pod: %v", err)
	}
	patch, err := pod.Mutate(&created, s.config.SchedulerName)
	if err != nil {
		return nil, fmt.Errorf("mutate pod: %w", err)
	}
	if len(patch) == 0 {
		return response, nil
	}
	if response.Patch, err = json.Marshal(patch); err != nil {
		return nil, fmt.Errorf("encode patch: %w", err)
	}
	patchType := admissionv1.PatchTypeJSONPatch
	response.PatchType = &patchType
	s.count(patch)
	return response, nil
}

// count adds what a patch does to the metrics.
func (s *Server) count(patch []pod.Operation) {
	for _, operation := range patch {
		if operation.Path == pod.PathSchedulerName {
			s.metrics.moved.Inc()
		} else {
			s.metrics.stamped.Inc()
		}
	}
}

// readReview reads the request's body. It reads no more than maxBodyBytes.
func readReview(w http.ResponseWriter, r *http.Request) (*admissionv1.AdmissionReview, error) {
	body, err := serving.ReadJSON(w, r, maxBodyBytes)
	if err != nil {
		return nil, err
	}
	review := &admissionv1.AdmissionReview{}
	if err := strictjson.Unmarshal(body, review); err != nil {
		return nil, serving.BadRequest("the body is not an AdmissionReview: %v", err)
	}
	if want := admissionv1.SchemeGroupVersion.String(); review.APIVersion != want || review.Kind != "AdmissionReview" {
		return nil, serving.BadRequest("the body is a %s %s: send an AdmissionReview of %s", review.APIVersion, review.Kind, want)
	}
	if review.Request == nil || review.Request.UID == "" {
		return nil, serving.BadRequest("the AdmissionReview has no request with a uid")
	}
	return review, nil
}
