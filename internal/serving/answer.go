// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RequestError is a request without a proper answer, with its HTTP status.
type RequestError struct {
	Code    int
	Reason  metav1.StatusReason
	Message string
}

func (e *RequestError) Error() string { return e.Message }

// BadRequest names a fault in a request's content.
func BadRequest(format string, args ...any) *RequestError {
	return &RequestError{http.StatusBadRequest, metav1.StatusReasonBadRequest, fmt.Sprintf(format, args...)}
}

// TooLarge says that a request is too large.
func TooLarge(format string, args ...any) *RequestError {
	return &RequestError{http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, fmt.Sprintf(format, args...)}
}

// Unavailable says that the server can't answer now.
func Unavailable(format string, args ...any) *RequestError {
	return &RequestError{http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, fmt.Sprintf(format, args...)}
}

// WantJSON requires a JSON content type. Its error is a *RequestError.
func WantJSON(r *http.Request) error {
	if mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mediaType != "application/json" {
		return &RequestError{http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
			fmt.Sprintf("the body has Content-Type %q: send application/json", r.Header.Get("Content-Type"))}
	}
	return nil
}

// ReadJSON reads a request's JSON body of at most limit bytes. Its error is a *RequestError.
func ReadJSON(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if err := WantJSON(r); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, TooLarge("the body is larger than %d bytes", tooLarge.Limit)
	}
	if err != nil {
		return nil, BadRequest("the body can't be read: %v", err)
	}
	return body, nil
}

// WriteError answers with a Status, the API's form of an error, in the name of server.
func WriteError(w http.ResponseWriter, server string, err error) {
	known := &RequestError{http.StatusInternalServerError, metav1.StatusReasonInternalError, err.Error()}
	errors.As(err, &known)
	WriteJSON(w, known.Code, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure,
		Code:     int32(known.Code),
		Reason:   known.Reason,
		Message:  server + ": " + known.Message,
	})
}

// WriteJSON writes an answer. An error means that the client has gone.
func WriteJSON(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body)
}
