// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/verdicts"
)

func TestVerdicts(t *testing.T) {
	for _, row := range verdicts.Table() {
		t.Run(row.Name, func(t *testing.T) {
			fact, err := convert.Pod(row.Pod)
			if err != nil {
				t.Fatal(err)
			}
			x := newStill(t, slices.Concat(verdicts.Nodes(), row.Facts, []ledger.Event{fact})...)
			result := filterAt(t, x, row.Pod, row.Node)
			want := extenderv1.ExtenderFilterResult{NodeNames: &[]string{}}
			switch row.Outcome {
			case verdicts.Fits:
				want.NodeNames = &[]string{row.Node}
			case verdicts.Evictable:
				want.FailedNodes = extenderv1.FailedNodesMap{row.Node: row.Message}
			case verdicts.Hopeless:
				want.FailedAndUnresolvableNodes = extenderv1.FailedNodesMap{row.Node: row.Message}
			}
			if got, want := encoded(t, result), encoded(t, want); !bytes.Equal(got, want) {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func encoded(t *testing.T, value any) []byte {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func filterAt(t *testing.T, x *Extender, pod *corev1.Pod, node string) extenderv1.ExtenderFilterResult {
	t.Helper()
	body := encoded(t, extenderv1.ExtenderArgs{Pod: pod, NodeNames: &[]string{node}})
	request := httptest.NewRequest(http.MethodPost, "/"+verbFilter, bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	x.handler().ServeHTTP(recorder, request)
	var result extenderv1.ExtenderFilterResult
	if err := json.Unmarshal(recorder.Body.Bytes(), &result); err != nil || recorder.Code != http.StatusOK {
		t.Fatalf("filter answers %d %s", recorder.Code, recorder.Body)
	}
	return result
}
