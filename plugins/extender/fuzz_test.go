// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/plugins/internal/binding"
)

// still is a ledger that never changes, with no pods beyond its own.
type still struct {
	ledger *ledger.Ledger
}

func (s still) Ledger() *ledger.Ledger            { return s.ledger }
func (s still) Snapshot() ledger.Snapshot         { return s.ledger.Snapshot() }
func (s still) Subscribe(func(ledger.Touched))    {}
func (s still) HasSynced() bool                   { return true }
func (s still) WaitForSync(context.Context) error { return nil }

func (s still) Pod(string, string) (*corev1.Pod, bool) { return nil, false }

func (s still) ConfirmPod(_ context.Context, _, _, uid string) (*corev1.Pod, error) {
	if s.ledger.Snapshot().Pod(uid) == nil {
		return nil, nil
	}
	return &corev1.Pod{}, nil
}

// newStill is an extender that leads over a ledger with these facts.
func newStill(tb testing.TB, events ...ledger.Event) *Extender {
	tb.Helper()
	kube, facts := fake.NewClientset(), still{ledger.New()}
	for _, e := range events {
		facts.ledger.Apply(time.Unix(0, 0), e)
	}
	x, err := newExtender(Options{
		Config: DefaultConfig(), Facts: facts, Kube: kube, Pods: informers.NewSharedInformerFactory(kube, 0).Core().V1().Pods().Informer(),
		Placer: &binding.Placer{Ledger: facts.ledger, Now: time.Now, Binder: binding.Binder{
			Confirm: facts.ConfirmPod, Send: func(context.Context, *corev1.Binding) error { return nil },
		}},
	})
	if err != nil {
		tb.Fatal(err)
	}
	x.MaxBodyBytes = 1 << 20
	x.Lead(context.Background(), nil)
	return x
}

// For any input, the handler does not panic, and a scheduler can use the answer; the answer names
// only nodes of the request.
func FuzzVerbs(f *testing.F) {
	pod := ledger.Pod{UID: "uid-db", Namespace: "shop", Name: "db", Volumes: []ledger.PodVolume{{Name: "data", Claim: "data"}}}
	key := ledger.ClaimKey{Namespace: "shop", Name: "data"}
	volume := ledger.VolumeID{Driver: driver, Handle: "data"}
	x := newStill(f,
		ledger.PersistentVolume{Name: "pv", UID: "pv", Volume: volume, Access: ledger.AccessNode, Claim: key},
		ledger.Claim{Key: key, UID: "claim", PersistentVolume: "pv", Bound: true, Access: ledger.AccessNode},
		ledger.NodeDrivers{Node: "n1", Drivers: []ledger.DriverOnNode{{Name: driver, NodeID: "n1", Limit: 1}}},
		pod, ledger.Pod{UID: "old", Namespace: "shop", Name: "old", Node: "n1", Volumes: pod.Volumes})
	handler := x.handler()
	for verb, bodies := range map[byte][]string{
		0: {`{"Pod":` + rawPod + `,"NodeNames":["n1","n2"]}`, `{"Pod":` + rawPod + `,"Nodes":{"items":[{"metadata":{"name":"n1"}},{"metadata":{"name":"n2"},"spec":{}}]}}`, `null`, `{`},
		1: {`{"Pod":` + rawPod + `,"NodeNames":["n1","n2"]}`, `{"Pod":{"metadata":{"namespace":"a","name":"b","uid":"c"},"spec":{"volumes":[{"name":"x","iscsi":{}},{"name":"y","csi":null},{}]}},"Nodes":{"items":[{"metadata":{"name":"n1"}}]}}`},
		2: {`{"Pod":` + rawPod + `,"NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"old"}],"NumPDBViolations":1}}}`, `{"Pod":` + rawPod + `,"NodeNameToVictims":{"n1":{"Pods":[{"metadata":{"uid":"old"}}]},"n2":null}}`},
		3: {`{"PodName":"gone","PodNamespace":"shop","PodUID":"uid-gone","Node":"n1"}`, `{"PodName":"old","PodNamespace":"shop","PodUID":"old","Node":"n1"}`},
	} {
		for _, body := range bodies {
			f.Add(verb, []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, verb byte, body []byte) {
		path := []string{verbFilter, verbPrioritize, verbPreempt, verbBind}[verb%4]
		if path == verbBind && bytes.Contains(body, []byte("uid-db")) {
			return // it would be bound, beyond this test
		}
		request := httptest.NewRequest(http.MethodPost, "/"+path, bytes.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		switch recorder.Code {
		case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
			checkStatus(t, recorder.Code, recorder.Body.Bytes(), recorder.Code, "")
		case http.StatusOK:
			checkAnswer(t, path, body, recorder.Body.Bytes())
		default:
			t.Errorf("%s answered %d: %s", path, recorder.Code, recorder.Body)
		}
	})
}

// checkAnswer wants an answer to have each node of the request exactly once.
func checkAnswer(t *testing.T, path string, body, answer []byte) {
	t.Helper()
	decode := func(from []byte, into any) bool {
		err := json.Unmarshal(from, into)
		if err != nil && &from[0] == &answer[0] {
			t.Fatalf("%s answers %s: %v", path, answer, err)
		}
		return err == nil
	}
	var args extenderv1.ExtenderArgs
	switch path {
	case verbFilter:
		var result extenderv1.ExtenderFilterResult
		if !decode(answer, &result) || !decode(body, &args) || result.Error != "" {
			return
		}
		seen := 0
		if result.NodeNames != nil {
			seen = len(*result.NodeNames)
		} else if result.Nodes != nil {
			seen = len(result.Nodes.Items)
		}
		if asked := count(args); seen > asked || seen+len(result.FailedNodes)+len(result.FailedAndUnresolvableNodes) > asked {
			t.Errorf("asked about %d nodes, answered %s", asked, answer)
		}
	case verbPrioritize:
		var list extenderv1.HostPriorityList
		if !decode(answer, &list) || !decode(body, &args) {
			return
		}
		if len(list) != count(args) {
			t.Errorf("asked about %d nodes, answered %s", count(args), answer)
		}
		for _, p := range list {
			if p.Score < extenderv1.MinExtenderPriority || p.Score > extenderv1.MaxExtenderPriority {
				t.Errorf("node %s gets %d", p.Host, p.Score)
			}
		}
	case verbPreempt:
		decode(answer, &extenderv1.ExtenderPreemptionResult{})
	case verbBind:
		decode(answer, &extenderv1.ExtenderBindingResult{})
	}
}

// count is how many nodes arguments name. Given in both forms, either may count.
func count(args extenderv1.ExtenderArgs) int {
	n := 0
	if args.NodeNames != nil {
		n = len(*args.NodeNames)
	}
	if args.Nodes != nil {
		n = max(n, len(args.Nodes.Items))
	}
	return n
}
