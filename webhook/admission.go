// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	strictjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/moorage-dev/moorage/internal/serving"
	"github.com/moorage-dev/moorage/webhook/pod"
)

// maxBodyBytes bounds a request. The API server takes objects of up to 3 MiB, and a review can
// carry an object and its predecessor.
const maxBodyBytes = 8 << 20

// All requests together are bounded: bodies in bytes, and simultaneously decoded reviews. A review of
// serving.MaxValues values takes some 40 MiB.
const (
	maxBodiesBytes = 4 * maxBodyBytes
	maxDecoding    = 2
)

// The unread rest of an AdmissionReview could cost many times its length.
type postedReview struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Request    *admission `json:"request"`
}

type admission struct {
	UID         types.UID                   `json:"uid"`
	Resource    metav1.GroupVersionResource `json:"resource"`
	SubResource string                      `json:"subResource"`
	Operation   admissionv1.Operation       `json:"operation"`
	Object      runtime.RawExtension        `json:"object"`
}

type createdPod struct {
	Metadata struct {
		Name        string            `json:"name"`
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		SchedulerName   string                     `json:"schedulerName"`
		SchedulingGroup *corev1.PodSchedulingGroup `json:"schedulingGroup"`
		NodeName        string                     `json:"nodeName"`
		Volumes         []corev1.Volume            `json:"volumes"`
	} `json:"spec"`
}

func (p *createdPod) pod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: p.Metadata.Name, Labels: p.Metadata.Labels, Annotations: p.Metadata.Annotations},
		Spec: corev1.PodSpec{SchedulerName: p.Spec.SchedulerName, SchedulingGroup: p.Spec.SchedulingGroup,
			NodeName: p.Spec.NodeName, Volumes: p.Spec.Volumes},
	}
}

// mutatePod always admits the pod: admission policies deny.
func (s *Server) mutatePod(w http.ResponseWriter, r *http.Request) {
	response, err := s.review(w, r)
	if err != nil {
		serving.WriteError(w, name, err)
		return
	}
	serving.WriteJSON(w, http.StatusOK, admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Response: response,
	})
}

func (s *Server) review(w http.ResponseWriter, r *http.Request) (*admissionv1.AdmissionResponse, error) {
	size := r.ContentLength
	switch {
	case size > maxBodyBytes:
		return nil, serving.TooLarge("the body is larger than %d bytes", maxBodyBytes)
	case size < 0:
		size = maxBodyBytes // unknown
	}
	g := &guest{client: clientOf(r), size: size, cut: func() {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // a connection without a deadline is read to its end
	}}
	if err := s.bodies.enter(r.Context(), g); err != nil {
		return nil, serving.Unavailable("the client has gone")
	}
	defer s.bodies.leave(g)
	body, err := serving.ReadJSON(w, r, maxBodyBytes)
	if whole := s.bodies.whole(g); err != nil && !whole {
		return nil, serving.Unavailable("the body came too slowly, and others wait")
	}
	if err != nil {
		return nil, err
	}
	if err := s.decoding.Acquire(r.Context(), 1); err != nil {
		return nil, serving.Unavailable("the client has gone")
	}
	defer s.decoding.Release(1)
	request, err := parseReview(body)
	if err != nil {
		return nil, err
	}
	return s.respond(request)
}

func clientOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

func (s *Server) respond(request *admission) (*admissionv1.AdmissionResponse, error) {
	response := &admissionv1.AdmissionResponse{UID: request.UID, Allowed: true}
	pods := metav1.GroupVersionResource{Version: "v1", Resource: "pods"}
	if request.Resource != pods || request.SubResource != "" {
		return nil, serving.BadRequest("the request is for %s %s/%s: send only v1 pods to %s, see the rules of the MutatingWebhookConfiguration",
			request.Resource.String(), request.Resource.Resource, request.SubResource, pathMutatePod)
	}
	if request.Operation != admissionv1.Create {
		return response, nil
	}
	if err := serving.CheckValues(request.Object.Raw, "the pod"); err != nil {
		return nil, err
	}
	var created createdPod
	if err := strictjson.Unmarshal(request.Object.Raw, &created); err != nil {
		return nil, serving.BadRequest("request.object is not a v1 Pod: %v", err)
	}
	patch, err := pod.Mutate(created.pod(), s.config.SchedulerName)
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

func (s *Server) count(patch []pod.Operation) {
	for _, operation := range patch {
		if operation.Path == pod.PathSchedulerName {
			s.metrics.moved.Inc()
		} else {
			s.metrics.stamped.Inc()
		}
	}
}

func parseReview(body []byte) (*admission, error) {
	var posted postedReview
	if err := strictjson.Unmarshal(body, &posted); err != nil {
		return nil, serving.BadRequest("the body is not an AdmissionReview: %v", err)
	}
	if want := admissionv1.SchemeGroupVersion.String(); posted.APIVersion != want || posted.Kind != "AdmissionReview" {
		return nil, serving.BadRequest("the body is a %s %s: send an AdmissionReview of %s", posted.APIVersion, posted.Kind, want)
	}
	if posted.Request == nil || posted.Request.UID == "" {
		return nil, serving.BadRequest("the AdmissionReview has no request with a uid")
	}
	return posted.Request, nil
}
