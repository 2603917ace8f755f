// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/moorage-dev/moorage/internal/serving"
	"github.com/moorage-dev/moorage/plugins/extender/internal/wire"
)

const rawPod = `{"metadata":{"namespace":"shop","name":"db","uid":"uid-db"},"spec":{"volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"data"}}]}}`

func repeat(element string, times int) string {
	return strings.TrimSuffix(strings.Repeat(element+",", times), ",")
}

func TestBadRequestsGetAClearError(t *testing.T) {
	r := newRig(t, nil)
	const names = `"NodeNames":["n1"]`
	tests := []struct {
		name, verb, body string
		code             int
		want             string
	}{
		{"no body", "filter", ``, 400, "not ExtenderArgs"},
		{"not JSON", "filter", `<pod/>`, 400, "not ExtenderArgs"},
		{"an array", "filter", `[]`, 400, "not ExtenderArgs"},
		{"cut off", "filter", `{"Pod":` + rawPod + `,"NodeNames":["n1"`, 400, "not ExtenderArgs"},
		{"two objects", "filter", `{"Pod":` + rawPod + `,` + names + `}{}`, 400, "something follows"},
		{"nothing in it", "filter", `{}`, 400, "neither Nodes nor NodeNames"},
		{"null", "filter", `null`, 400, "neither Nodes nor NodeNames"},
		{"no nodes", "filter", `{"Pod":` + rawPod + `}`, 400, "neither Nodes nor NodeNames"},
		{"no pod", "filter", `{` + names + `}`, 400, "no Pod with"},
		{"a null pod", "filter", `{"Pod":null,` + names + `}`, 400, "no Pod with"},
		{"a pod without a UID", "filter", `{"Pod":{"metadata":{"namespace":"a","name":"b"}},` + names + `}`, 400, "no Pod with"},
		{"two pods", "filter", `{"Pod":` + rawPod + `,"pod":` + rawPod + `,` + names + `}`, 400, "more than one Pod"},
		{"no pod at all", "filter", `{"Pod":"db",` + names + `}`, 400, "not ExtenderArgs"},
		{"volumes that are none", "filter", `{"Pod":{"spec":{"volumes":"all"}},` + names + `}`, 400, "not ExtenderArgs"},
		{"names that are none", "filter", `{"Pod":` + rawPod + `,"NodeNames":[1]}`, 400, "where a string is wanted"},
		{"names that are no list", "filter", `{"Pod":` + rawPod + `,"NodeNames":"n1"}`, 400, "not a list"},
		{"a node without a name", "filter", `{"Pod":` + rawPod + `,"Nodes":{"items":[{}]}}`, 400, "node 0 has no name"},
		{"a node that is none", "filter", `{"Pod":` + rawPod + `,"Nodes":{"items":["n1"]}}`, 400, "node 0 has no name"},
		{"nodes that are no list", "filter", `{"Pod":` + rawPod + `,"Nodes":{"items":{}}}`, 400, "not ExtenderArgs"},
		{"too many names", "filter", `{"Pod":` + rawPod + `,"NodeNames":[` + repeat(`"n"`, wire.MaxNodes+1) + `]}`, 413, "more than 20000 node names"},
		{"too many nodes", "prioritize", `{"Pod":` + rawPod + `,"Nodes":{"items":[` + repeat(`{"metadata":{"name":"n"}}`, wire.MaxNodes+1) + `]}}`, 413, "more than 20000 nodes"},
		{"a pod too long", "filter", `{"Pod":{"metadata":{"name":"` + strings.Repeat("x", wire.MaxPodBytes) + `"}},` + names + `}`, 413, "the pod has"},
		{"a pod of many empty things", "filter", `{"Pod":{"spec":{"volumes":[` + repeat(`{}`, serving.MaxValues) + `]}},` + names + `}`, 413, "values"},
		{"too deep", "filter", `{"Pod":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `,` + names + `}`, 400, "not ExtenderArgs"},
		{"too large", "filter", `{"Junk":"` + strings.Repeat("x", 1<<20) + `"}`, 413, "nodeCacheCapable"},
		{"no victims' UIDs", "preempt", `{"Pod":` + rawPod + `,"NodeNameToMetaVictims":{"n1":{"Pods":[{}]}}}`, 400, `a victim at node "n1" has no UID`},
		{"too many victims", "preempt", `{"Pod":` + rawPod + `,"NodeNameToMetaVictims":{"n1":{"Pods":[` + repeat(`{"UID":"u"}`, wire.MaxVictims+1) + `]}}}`, 413, "more than 100000 victims"},
		{"victims of nobody", "preempt", `{"NodeNameToMetaVictims":{}}`, 400, "no Pod with"},
		{"victims that are none", "preempt", `{"Pod":` + rawPod + `,"NodeNameToVictims":[]}`, 400, "not ExtenderPreemptionArgs"},
		{"a binding to nowhere", "bind", `{"PodName":"a","PodNamespace":"b","PodUID":"c"}`, 400, "must have PodName"},
		{"a binding of nothing", "bind", `null`, 400, "must have PodName"},
		{"a binding that is none", "bind", `{"PodName":1}`, 400, "not ExtenderBindingArgs"},
		{"a long binding", "bind", `{"PodName":"` + strings.Repeat("x", wire.MaxBindingBytes) + `"}`, 413, "16384 bytes"},
		{"no such verb", "unbind", `{}`, 404, "the verbs are filter, prioritize, bind, preempt"},
		{"no verb", "", `{}`, 404, "the verbs are"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r.x.MaxBodyBytes = DefaultConfig().MaxBodyBytes
			if test.name == "too large" {
				r.x.MaxBodyBytes = 1 << 20
			}
			code, answer := r.post(test.verb, []byte(test.body))
			checkStatus(t, code, answer, test.code, test.want)
		})
	}
	response, err := r.client.Get("https://" + r.address + "/filter")
	if err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(response.Body)
	checkStatus(t, response.StatusCode, answer, http.StatusMethodNotAllowed, "does not take GET")
	response, err = r.client.Post("https://"+r.address+"/filter", "text/plain", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	answer, _ = io.ReadAll(response.Body)
	checkStatus(t, response.StatusCode, answer, http.StatusUnsupportedMediaType, "send application/json")
	r.wantWrites()
}

func checkStatus(t *testing.T, code int, answer []byte, wantCode int, want string) {
	t.Helper()
	var status metav1.Status
	if err := json.Unmarshal(answer, &status); err != nil {
		t.Fatalf("the answer %.200q is no Status: %v", answer, err)
	}
	if code != wantCode || int(status.Code) != code || status.Kind != "Status" || status.Status != metav1.StatusFailure {
		t.Errorf("answered %d with %+v, want %d", code, status, wantCode)
	}
	if !strings.Contains(status.Message, want) || !strings.HasPrefix(status.Message, "moorage-extender: ") {
		t.Errorf("the message is %.300q, want it to say %q", status.Message, want)
	}
}

// Go's own decoder and earlier schedulers take keys in any case.
func TestKeysInAnyCase(t *testing.T) {
	r, pod := withPod(t)
	r.seen(pod)
	for _, body := range []string{
		`{"pod":` + rawPod + `,"nodenames":["n1"],"nodes":null}`,
		`{"POD":` + rawPod + `,"Nodes":{"metadata":{},"items":[{"kind":"Node","metadata":{"labels":{"name":"x"},"name":"n1"},"spec":{}}]},"NodeNames":null,"Extra":{"a":[1]}}`,
	} {
		code, answer := r.post(verbFilter, []byte(body))
		var result extenderv1.ExtenderFilterResult
		if err := json.Unmarshal(answer, &result); err != nil || code != 200 {
			t.Fatalf("%d %s", code, answer)
		}
		if named := result.NodeNames != nil && len(*result.NodeNames) == 1; !named && (result.Nodes == nil || len(result.Nodes.Items) != 1) {
			t.Errorf("%s passes %s", body, answer)
		}
	}
}

// Simultaneous schedulers wait rather than fill the memory.
func TestLargeRequestsTakeTurns(t *testing.T) {
	r, _ := withPod(t)
	for range judgingAtOnce {
		r.x.judging <- struct{}{}
	}
	body := []byte(`{"Pod":` + rawPod + `,"NodeNames":["n1"]}`)
	codes := make(chan int, 1)
	go func() {
		code, _ := r.post(verbFilter, body)
		codes <- code
	}()
	gone := httptest.NewRequest(http.MethodPost, "/filter", bytes.NewReader(body))
	gone.Header.Set("Content-Type", "application/json")
	ctx, cancel := contextDone()
	defer cancel()
	recorder := httptest.NewRecorder()
	r.x.handler().ServeHTTP(recorder, gone.WithContext(ctx))
	checkStatus(t, recorder.Code, recorder.Body.Bytes(), http.StatusServiceUnavailable, "has gone")
	select {
	case code := <-codes:
		t.Errorf("answered %d before it was its turn", code)
	default:
	}
	<-r.x.judging
	if code := <-codes; code != http.StatusOK {
		t.Errorf("answered %d", code)
	}
}

func TestClientsThatGoAway(t *testing.T) {
	r := newRig(t, nil)
	reader, writer := io.Pipe()
	done := make(chan error, 1)
	go func() {
		response, err := r.client.Post("https://"+r.address+"/filter", "application/json", reader)
		if err == nil {
			_ = response.Body.Close()
		}
		done <- err
	}()
	if _, err := writer.Write([]byte(`{"Pod":`)); err != nil {
		t.Fatal(err)
	}
	r.eventually("the request to be read", func() bool { return len(r.x.judging) == 1 })
	_ = writer.CloseWithError(io.ErrUnexpectedEOF)
	<-done
	r.eventually("its place to be free", func() bool { return len(r.x.judging) == 0 })
}

// A slow client is cut off, and its place is free.
func TestClientsThatDawdle(t *testing.T) {
	x := newStill(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	server := serving.Server{Handler: x.handler(), ReadTimeout: 50 * time.Millisecond, WriteTimeout: patience}
	go func() { ended <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	for part, want := range map[string]string{
		"POST /filter HTTP/1.1\r\nHost: x\r\n": "",
		"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{\"Po": "took too long to arrive",
	} {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(patience))
		if _, err := io.WriteString(conn, part); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(conn) // to the end: the server hangs up
		if err != nil || !strings.Contains(string(answer), want) || want != "" && !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") {
			t.Errorf("who stops after %q is answered %q (%v)", part, answer, err)
		}
		_ = conn.Close()
	}
	if n := len(x.judging); n != 0 {
		t.Errorf("%d places are still taken", n)
	}
	if readTimeout <= 0 || readTimeout > 30*time.Second {
		t.Errorf("a client may take %s to send a request", readTimeout)
	}
}

func TestPanicsAreAnsweredAndCounted(t *testing.T) {
	r, pod := withPod(t)
	r.x.Now = func() time.Time { panic("unforeseen") }
	body, err := json.Marshal(bindingArgs(pod, "n1"))
	if err != nil {
		t.Fatal(err)
	}
	code, answer := r.post(verbBind, body)
	checkStatus(t, code, answer, http.StatusInternalServerError, "a bug in the server")
	if strings.Contains(string(answer), "unforeseen") {
		t.Error("the answer tells the client what panicked")
	}
	if got := testutil.ToFloat64(r.x.metrics.panics); got != 1 {
		t.Errorf("counted %v panics", got)
	}
	r.x.Now = time.Now
	if against := r.bind(pod, "n1"); against != "" {
		t.Errorf("the next bind: %s", against)
	}
}

func TestMetrics(t *testing.T) {
	r, pod := withPod(t)
	r.seen(pod)
	r.filter(pod)
	r.post("made-up-by-a-client", nil)
	r.bind(pod, "n1")
	r.bind(pod, "n2")
	ends := r.client.Transport.(*http.Transport).TLSClientConfig.Certificates[0].Leaf.NotAfter
	registry := prometheus.NewRegistry()
	registry.MustRegister(r.x.metrics.collectors(func() time.Time { return time.Unix(7, 0) })...)
	recorder := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{
		`moorage_extender_requests_total{code="200",verb="filter"} 1`,
		`moorage_extender_requests_total{code="404",verb="other"} 1`,
		`moorage_extender_request_duration_seconds_count{verb="bind"} 2`,
		`moorage_extender_binds_total{result="bound"} 1`,
		`moorage_extender_binds_total{result="refused"} 1`,
		`moorage_extender_certificate_expiry_timestamp_seconds 7`,
		fmt.Sprintf("moorage_extender_client_certificate_expiry_timestamp_seconds{client=%q} %s", scheduler, strconv.FormatFloat(float64(ends.Unix()), 'g', -1, 64)),
	} {
		if !strings.Contains(recorder.Body.String(), want) {
			t.Errorf("the metrics do not have %q", want)
		}
	}
}
