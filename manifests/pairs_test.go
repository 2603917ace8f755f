// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// The folder for all rendered documents; see make kubeconform.
var rendered = flag.String("rendered", "", "write each document that TestEveryPairOfValues renders into this `folder`, once")

type parameter struct {
	path   string // such as webhook.port
	values []any
}

type row []int

type pair struct{ a, av, b, bv int }

// All pairs of enums, booleans and examples. The API accepts each manifest, or the chart refuses the pair
// by name with the remedy.
func TestEveryPairOfValues(t *testing.T) {
	p := newPairs(t)
	for i, parameter := range p.parameters {
		for v := range parameter.values {
			p.try(p.beside(map[int]int{i: v}), nil)
		}
	}
	for i := 0; ; {
		left := p.left()
		if len(left) == 0 {
			break
		}
		// From the whole list: neighbours have a value in common.
		q := left[(i*7919)%len(left)]
		i++
		kept := map[int]int{q.a: q.av, q.b: q.bv}
		if !p.try(p.draw(kept), kept) {
			p.try(p.beside(kept), nil)
		}
	}
	t.Logf("%d parameters, %d rows; %d pairs are accepted, %d refused", len(p.parameters), p.rendered, p.accepted, p.refused)
	if len(p.parameters) < 50 || p.refused == 0 || p.accepted == 0 {
		t.Error("that is too little to mean anything")
	}
}

type pairs struct {
	t                           *testing.T
	chart                       *chart.Chart
	decoder                     runtime.Decoder
	random                      *rand.Rand
	parameters                  []parameter
	known                       map[pair]bool
	good                        map[string]bool // documents that were checked
	rendered, accepted, refused int
}

func newPairs(t *testing.T) *pairs {
	t.Helper()
	p := &pairs{t: t, chart: loadChart(t), random: rand.New(rand.NewPCG(1, 2)), known: map[pair]bool{}, good: map[string]bool{}}
	p.decoder = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	var schema map[string]any
	if err := json.Unmarshal(p.chart.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	defaults := maps.Clone(p.chart.Values)
	image := maps.Clone(defaults["image"].(map[string]any))
	image["registry"] = registry
	defaults["image"] = image
	p.parameters = parametersOf(schema, schema, defaults, "")
	return p
}

func parametersOf(root, schema map[string]any, defaults any, path string) []parameter {
	schema = resolve(root, schema)
	below, _ := schema["properties"].(map[string]any)
	_, whole := schema["examples"]
	object, _ := defaults.(map[string]any)
	if below == nil || whole {
		values := []any{defaults}
		for _, v := range candidates(schema) {
			if !slices.ContainsFunc(values, func(have any) bool { return same(have, v) }) {
				values = append(values, v)
			}
		}
		return []parameter{{path, values}}
	}
	var out []parameter
	for _, name := range slices.Sorted(maps.Keys(below)) {
		if path == "" && name == "global" {
			continue
		}
		out = append(out, parametersOf(root, below[name].(map[string]any), object[name], strings.TrimPrefix(path+"."+name, "."))...)
	}
	return out
}

func resolve(root, schema map[string]any) map[string]any {
	ref, ok := schema["$ref"].(string)
	if !ok {
		return schema
	}
	out := maps.Clone(root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any))
	maps.Copy(out, schema)
	delete(out, "$ref")
	return out
}

func candidates(schema map[string]any) []any {
	if enum, ok := schema["enum"].([]any); ok {
		return enum
	}
	if schema["type"] == "boolean" {
		return []any{false, true}
	}
	examples, _ := schema["examples"].([]any)
	return examples
}

func same(a, b any) bool {
	left, errA := json.Marshal(a)
	right, errB := json.Marshal(b)
	return errA == nil && errB == nil && reflect.DeepEqual(left, right)
}

func (p *pairs) beside(chosen map[int]int) row {
	out := make(row, len(p.parameters))
	for i, v := range chosen {
		out[i] = v
	}
	return out
}

func (p *pairs) draw(kept map[int]int) row {
	out, chosen := p.beside(kept), slices.Collect(maps.Keys(kept))
	for _, i := range p.random.Perm(len(p.parameters)) {
		if _, ok := kept[i]; ok {
			continue
		}
		best, most := 0, -1
		for _, v := range p.random.Perm(len(p.parameters[i].values)) {
			fresh := 0
			for _, j := range chosen {
				if !p.known[newPair(i, v, j, out[j])] {
					fresh++
				}
			}
			if fresh > most {
				best, most = v, fresh
			}
		}
		out[i], chosen = best, append(chosen, i)
	}
	return out
}

func newPair(a, av, b, bv int) pair {
	if a > b {
		a, av, b, bv = b, bv, a, av
	}
	return pair{a, av, b, bv}
}

const mendings = 20

// With kept, it changes other values until the row is accepted; false if that does not help.
func (p *pairs) try(r row, kept map[int]int) bool {
	for range mendings {
		p.rendered++
		files, err := render(p.chart, p.values(r))
		if err == nil {
			p.check(r, files)
			p.learn(r, &p.accepted)
			return true
		}
		named := p.named(err)
		if !slices.ContainsFunc(named, func(i int) bool { return r[i] > 0 }) {
			p.t.Errorf("%s: the refusal names none of the values: %v", p.text(r), err)
		}
		if kept == nil {
			p.learn(r, &p.refused)
			return false
		}
		named = slices.DeleteFunc(named, func(i int) bool { _, ok := kept[i]; return ok })
		if len(named) == 0 {
			return false
		}
		i := named[p.random.IntN(len(named))]
		r[i] = (r[i] + 1) % len(p.parameters[i].values)
	}
	return false
}

func (p *pairs) named(err error) []int {
	var out []int
	_, reasons, _ := strings.Cut(err.Error(), "these values can't work:")
	for i, parameter := range p.parameters {
		if path := parameter.path; path != "mode" && strings.Contains(reasons, path) || path == "mode" && strings.Contains(reasons, "mode ") {
			out = append(out, i)
		}
	}
	return out
}

func (p *pairs) learn(r row, count *int) {
	for i := range r {
		for j := i + 1; j < len(r); j++ {
			if q := (pair{i, r[i], j, r[j]}); !p.known[q] {
				p.known[q] = true
				*count++
			}
		}
	}
}

func (p *pairs) left() []pair {
	var out []pair
	for i := range p.parameters {
		for j := i + 1; j < len(p.parameters); j++ {
			for v := range p.parameters[i].values {
				for w := range p.parameters[j].values {
					if q := (pair{i, v, j, w}); !p.known[q] {
						out = append(out, q)
					}
				}
			}
		}
	}
	return out
}

func (p *pairs) values(r row) map[string]any {
	out := map[string]any{"image": map[string]any{"registry": registry}}
	for i, v := range r {
		if v == 0 {
			continue
		}
		fields := strings.Split(p.parameters[i].path, ".")
		if err := unstructured.SetNestedField(out, runtime.DeepCopyJSONValue(p.parameters[i].values[v]), fields...); err != nil {
			p.t.Fatal(err)
		}
	}
	return out
}

func (p *pairs) text(r row) string {
	raw, err := yaml.Marshal(p.values(r))
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

func (p *pairs) check(r row, files map[string]string) {
	seen := map[string]bool{}
	for file, text := range files {
		if !strings.HasSuffix(file, ".yaml") || file == "crds.yaml" {
			continue
		}
		for reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text))); ; {
			document, err := reader.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			object := &unstructured.Unstructured{}
			if err == nil {
				err = yaml.UnmarshalStrict(document, &object.Object)
			}
			if err == nil && !p.good[string(document)] {
				err = p.taken(document, object)
			}
			if err != nil {
				p.t.Errorf("%s: %s: %v\n%s", p.text(r), file, err, document)
				continue
			}
			p.good[string(document)] = true
			key := fmt.Sprintf("%s/%s/%s", object.GetKind(), object.GetNamespace(), object.GetName())
			if len(object.Object) > 0 && seen[key] {
				p.t.Errorf("%s: there are two %s", p.text(r), key)
			}
			seen[key] = true
			p.write(document)
		}
	}
}

func (p *pairs) taken(document []byte, object *unstructured.Unstructured) error {
	if len(object.Object) == 0 || !scheme.Scheme.Recognizes(object.GroupVersionKind()) {
		return nil
	}
	known, _, err := p.decoder.Decode(document, nil, nil)
	if err != nil {
		return err
	}
	if lost := lost(object.GetKind(), object.Object, stored(p.t, scheme.Scheme, known)); len(lost) > 0 {
		return fmt.Errorf("the API server does not keep %v", lost)
	}
	return nil
}

func (p *pairs) write(document []byte) {
	if *rendered == "" {
		return
	}
	name := fmt.Sprintf("%x.yaml", sha256.Sum256(document))
	if err := os.WriteFile(filepath.Join(*rendered, name), document, 0o600); err != nil {
		p.t.Fatal(err)
	}
}
