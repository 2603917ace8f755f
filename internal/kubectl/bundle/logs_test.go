// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/moorage-dev/moorage/internal/kubectl/archive"
	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
)

func reading(t *testing.T, serve http.HandlerFunc) *collector {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	c, err := cluster.Connect(&rest.Config{Host: server.URL}, "", "")
	if err != nil {
		t.Fatal(err)
	}
	return &collector{client: c.Kube.Discovery().RESTClient(), to: archive.NewWriter(io.Discard, time.Unix(0, 0)), patience: time.Minute,
		about: archive.About{Failed: map[string]string{}}, tell: func(string, ...any) {}}
}

func TestEndlessAnswer(t *testing.T) {
	x := reading(t, func(w http.ResponseWriter, _ *http.Request) {
		for chunk := make([]byte, 1<<20); ; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	if err := x.answer(t.Context(), "logs/one.log", x.client.Get().AbsPath("/one")); err != nil {
		t.Fatal(err)
	}
	if x.answered != maxLog || !strings.Contains(x.about.Failed["logs/one.log"], "only the first 20 MiB") {
		t.Errorf("%d bytes were read, and it says %q", x.answered, x.about.Failed)
	}
}

func TestSilentAnswer(t *testing.T) {
	x := reading(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/silent" {
			<-r.Context().Done()
			return
		}
		_, _ = w.Write([]byte("up 1"))
	})
	x.patience = time.Millisecond
	if err := x.answer(t.Context(), "silent", x.client.Get().AbsPath("/silent")); err != nil || x.about.Failed["silent"] == "" {
		t.Errorf("%v, and it says %q", err, x.about.Failed)
	}
	x.patience = time.Minute
	if err := x.answer(t.Context(), "next", x.client.Get().AbsPath("/next")); err != nil || x.answered != len("up 1") {
		t.Errorf("%v, %d bytes, and it says %q", err, x.answered, x.about.Failed)
	}
}

func TestManyAnswers(t *testing.T) {
	asked := false
	x := reading(t, func(http.ResponseWriter, *http.Request) { asked = true })
	x.answered = maxAll
	if err := x.answer(t.Context(), "one", x.client.Get().AbsPath("/one")); err != nil || asked || x.about.Failed["one"] == "" {
		t.Errorf("%v, asked %t, and it says %q", err, asked, x.about.Failed)
	}
}
