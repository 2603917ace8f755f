// SPDX-License-Identifier: Apache-2.0

package connect_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/connect"
	"github.com/moorage-dev/moorage/test/apitest"
)

// A gateway may answer for a write that was carried out: the first answer counts.
func TestWritesAreSentOnce(t *testing.T) {
	for _, code := range []int{http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout} {
		sent := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			sent++
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"ServerTimeout","code":%d}`, code)
		}))
		c, err := connect.New(connect.Config{Kubeconfig: apitest.Kubeconfig(t, s.URL), Name: "p", QPS: 10, Burst: 10, WriteQPS: -1, WriteTimeout: 7 * time.Second, RenewDeadline: 8 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		writes := map[string]func() error{
			"bind": func() error {
				return c.Write.CoreV1().Pods("s").Bind(t.Context(), &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: "p"}, Target: corev1.ObjectReference{Kind: "Node", Name: "n"}}, metav1.CreateOptions{})
			},
			"ticket": func() error {
				return c.WriteMoorage.VolumeTickets("s").Delete(t.Context(), "t", metav1.DeleteOptions{})
			},
		}
		for name, write := range writes {
			sent = 0
			err := write()
			if status, is := err.(apierrors.APIStatus); !is || int(status.Status().Code) != code {
				t.Errorf("%s, %d: error %v", name, code, err)
			}
			if sent != 1 {
				t.Errorf("%s, %d: it is sent %d times", name, code, sent)
			}
		}
		s.Close()
	}
}
