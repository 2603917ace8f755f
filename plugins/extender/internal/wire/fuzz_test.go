// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/moorage-dev/moorage/internal/serving"
	"github.com/moorage-dev/moorage/plugins/extender/internal/wire"
)

const pod = `{"metadata":{"namespace":"shop","name":"db","uid":"u"},"spec":{"volumes":[{"name":"x","csi":null},{}]}}`

// clearError wants an error that an HTTP client can understand.
func clearError(t *testing.T, body []byte, err error) {
	t.Helper()
	var known *serving.RequestError
	if !errors.As(err, &known) || known.Code != http.StatusBadRequest && known.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("%q: the error is %v", body, err)
	}
}

// ReadArgs reads the same as the protocol's own types, or refuses the body with a clear error.
// Decoders differ on keys that differ only in case, or come twice; no scheduler sends such keys.
func FuzzReadArgs(f *testing.F) {
	for _, body := range []string{
		`{"Pod":` + pod + `,"NodeNames":["n1","n2"],"Nodes":null}`,
		`{"Pod":` + pod + `,"Nodes":{"metadata":{},"items":[{"metadata":{"labels":{"name":"x"},"name":"n1"}},{"metadata":{"name":"n2"},"spec":{}}]}}`,
		`{"Pod":null,"NodeNames":[]}`, `{"nodes":{"items":null},"x":[{"y":1e9}]}`, `null`, `{`, `{}{}`, `[]`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := wire.ReadArgs(bytes.NewReader(body))
		if err != nil {
			clearError(t, body, err)
			return
		}
		if got.Pod == nil || got.Pod.Name == "" || got.Pod.Namespace == "" || got.Pod.UID == "" {
			t.Errorf("%q: the pod can't be told from others", body)
		}
		var want extenderv1.ExtenderArgs
		if json.Unmarshal(body, &want) != nil || ambiguous(body) {
			return
		}
		var names []string
		switch {
		case want.NodeNames != nil:
			names = *want.NodeNames
		case want.Nodes != nil:
			for _, n := range want.Nodes.Items {
				names = append(names, n.Name)
			}
		}
		if len(names) != len(got.Nodes) {
			t.Fatalf("%q: %d nodes, want %d", body, len(got.Nodes), len(names))
		}
		for i, n := range got.Nodes {
			if n.Name != names[i] || got.Named != (n.Object == nil) {
				t.Errorf("%q: node %d is %q, want %q", body, i, n.Name, names[i])
			}
		}
	})
}

// ambiguous says whether decoders may differ: an object has a key twice, a key is in another case,
// nodes come in both forms, or a name is escaped.
func ambiguous(body []byte) bool {
	lower := bytes.ToLower(body)
	for _, key := range []string{`"items"`, `"metadata"`, `"name"`} {
		if bytes.Count(lower, []byte(key)) != bytes.Count(body, []byte(key)) {
			return true
		}
	}
	return bytes.Count(lower, []byte(`"nodes"`))+bytes.Count(lower, []byte(`"nodenames"`)) > 1 ||
		bytes.Contains(body, []byte(`\`)) || twice(body)
}

func twice(body []byte) bool {
	decoder := json.NewDecoder(bytes.NewReader(body))
	var walk func() bool
	walk = func() bool {
		token, err := decoder.Token()
		if err != nil {
			return true
		}
		opening, ok := token.(json.Delim)
		if !ok {
			return false
		}
		seen := map[string]bool{}
		for decoder.More() {
			if opening == '{' {
				key, err := decoder.Token()
				name, ok := key.(string)
				if err != nil || !ok || seen[name] {
					return true
				}
				seen[name] = true
			}
			if walk() {
				return true
			}
		}
		_, err = decoder.Token()
		return err != nil
	}
	return walk()
}

func FuzzReadPreemption(f *testing.F) {
	for _, body := range []string{
		`{"Pod":` + pod + `,"NodeNameToMetaVictims":{"n1":{"Pods":[{"UID":"a"}],"NumPDBViolations":1}}}`,
		`{"Pod":` + pod + `,"NodeNameToVictims":{"n1":{"Pods":[{"metadata":{"uid":"a"}},{"metadata":{"uid":"b"}}]},"n2":null},"NodeNameToMetaVictims":null}`,
		`{"Pod":` + pod + `}`, `null`, `{"NodeNameToVictims":{"n1":{"Pods":[null]}}}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := wire.ReadPreemption(bytes.NewReader(body))
		if err != nil {
			clearError(t, body, err)
			return
		}
		for node, victims := range got.Victims {
			for _, v := range victims.Pods {
				if v.UID == "" {
					t.Errorf("%q: a victim at %q has no UID", body, node)
				}
			}
		}
	})
}
