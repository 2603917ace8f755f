// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/internal/serving"
	"github.com/moorage-dev/moorage/test/alloctest"
)

const (
	reviewHead = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","resource":{"group":"","version":"v1","resource":"pods"},`
	inSpec     = `"object":{"metadata":{"name":"p"},"spec":{`
)

func allocated(handler http.Handler, body string) (code int, bytes uint64) {
	request := httptest.NewRequest(http.MethodPost, pathMutatePod, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	bytes = alloctest.Bytes(func() { handler.ServeHTTP(answer, request) })
	return answer.Code, bytes
}

// Every client that reaches the port may post maxBodyBytes: the memory must be in proportion.
func TestWhatABodyCostsIsInProportion(t *testing.T) {
	const size, most = 256 << 10, 16
	for name, test := range map[string]struct {
		before, each, after string
		code                int
	}{
		"containers":              {inSpec + `"containers":[`, `{}`, `]}}}}`, 413},
		"volumes":                 {inSpec + `"volumes":[`, `{}`, `]}}}}`, 413},
		"containers that are few": {inSpec + `"containers":[`, `{"name":"a"}`, `]}}}}`, 200},
		"groups":                  {`"userInfo":{"groups":[`, `""`, `]},"object":{}}}`, 200},
	} {
		t.Run(name, func(t *testing.T) {
			body := reviewHead + test.before + strings.Repeat(test.each+",", size/(len(test.each)+1)) + test.each + test.after
			code, bytes := allocated(newServer(t).Handler(), body)
			if times := bytes / uint64(len(body)); times > most || code != test.code {
				t.Errorf("a body of %d KiB took %d times its size and the answer %d; want %d times at most, and %d",
					len(body)>>10, times, code, most, test.code)
			}
		})
	}
}

// The most reviews at a time with the most volumes fit into the container's 256 MiB, beside the
// bodies.
func TestTheCostliestReviewFits(t *testing.T) {
	const container = 256 << 20 // webhook.resources in the chart
	body := reviewHead + inSpec + `"volumes":[` + strings.Repeat(`{},`, serving.MaxValues/2-10) + `{}]}}}}`
	code, bytes := allocated(newServer(t).Handler(), body)
	if code != http.StatusOK {
		t.Fatalf("the answer is %d: %d volumes were to be taken", code, serving.MaxValues/2-10)
	}
	if most := uint64(container-2*maxBodiesBytes) / maxDecoding; bytes > most {
		t.Errorf("it takes %d MiB; want %d at most", bytes>>20, most>>20)
	}
}

// A request that does not fit into the memory waits until its client gives up.
func TestBodiesWaitForRoom(t *testing.T) {
	server := newServer(t)
	all := &guest{client: "others", size: maxBodiesBytes, cut: func() { t.Error("a body that is there is cut off") }}
	if err := server.bodies.enter(t.Context(), all); err != nil || !server.bodies.whole(all) {
		t.Fatal("not empty at first")
	}
	request := httptest.NewRequest(http.MethodPost, pathMutatePod, strings.NewReader(string(review(t, rawPod, nil))))
	request.Header.Set("Content-Type", "application/json")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	answer := httptest.NewRecorder()
	server.Handler().ServeHTTP(answer, request.WithContext(ctx))
	if answer.Code != http.StatusServiceUnavailable {
		t.Errorf("answered %d with no room left, want 503", answer.Code)
	}
	server.bodies.leave(all)
	answer = httptest.NewRecorder()
	server.Handler().ServeHTTP(answer, request)
	if answer.Code != http.StatusOK {
		t.Errorf("answered %d once there was room, want 200", answer.Code)
	}
	if server.bodies.free != maxBodiesBytes || len(server.bodies.held)+len(server.bodies.inside)+len(server.bodies.waiting) > 0 {
		t.Error("an answered request still holds room")
	}
}
