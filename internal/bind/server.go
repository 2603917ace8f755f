// SPDX-License-Identifier: Apache-2.0

package bind

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/serving"
)

// Path is where requests are sent to, by POST.
const Path = "/v1/bind"

// maxRequestBytes bounds a request: a UID, a version and a node's name.
const maxRequestBytes = 4 << 10

// server names who answers in errors.
const server = "moorage-controller"

// Handler answers requests by the Binder of the term that this process leads in; nil: it
// doesn't lead. It says ErrUseTicket by 409 Conflict, and that nobody knows by 504.
func Handler(leading func() Binder) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+Path, func(w http.ResponseWriter, r *http.Request) {
		request, err := read(w, r)
		if err == nil {
			leads := leading()
			if leads == nil {
				w.Header().Set("Connection", "close") // the next one leads to whoever does
			}
			err = answer(r, leads, request)
		}
		if err != nil {
			serving.WriteError(w, server, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	return mux
}

// read reads a request. Its error is a *serving.RequestError.
func read(w http.ResponseWriter, r *http.Request) (Request, error) {
	var request Request
	body, err := serving.ReadJSON(w, r, maxRequestBytes)
	if err != nil {
		return request, err
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	switch err := decoder.Decode(&request); {
	case err != nil:
		return request, serving.BadRequest("the request can't be decoded: %v", err)
	case decoder.Decode(&struct{}{}) != io.EOF:
		return request, serving.BadRequest("there is more than one request")
	case request.Pod == "" || request.Version == "" || request.Node == "":
		return request, serving.BadRequest("pod, version and node are needed: pod=%q version=%q node=%q", request.Pod, request.Version, request.Node)
	}
	return request, nil
}

// answer carries a request out. Its error is a *serving.RequestError.
func answer(r *http.Request, leads Binder, request Request) error {
	if leads == nil {
		return useTicket(errors.New("this process does not lead"))
	}
	err := leads.Bind(r.Context(), request)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrUseTicket):
		return useTicket(err)
	}
	return &serving.RequestError{
		Code: http.StatusGatewayTimeout, Reason: metav1.StatusReasonTimeout,
		Message: fmt.Sprintf("it is not known whether pod %s is bound: %v", request.Pod, err),
	}
}

func useTicket(err error) error {
	return &serving.RequestError{Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: err.Error()}
}
