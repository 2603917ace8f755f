// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
)

// client-go may not decode the API server's message.
func TestForbiddenIsAMissingRight(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no","code":403}`))
	}))
	defer server.Close()
	c, err := cluster.Connect(&rest.Config{Host: server.URL}, "", "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Kube.Discovery().RESTClient().Get().SetHeader("Accept", "application/json").AbsPath("/apis/x").DoRaw(t.Context())
	if !strings.Contains(err.Error(), "unknown") {
		t.Fatalf("it is decoded by now: %v", err)
	}
	f := unchecked("customresourcedefinitions", err)[0]
	if f.Evidence != "the right to read it is missing (HTTP status 403)" || f.Fix != "Run doctor with the right to read customresourcedefinitions, or check it by hand." {
		t.Errorf("%+v", f)
	}
}
