// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

func noon() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// session writes an archive as Record does: with the objects that there were at first, and a
// time for each of the changes after them.
type session struct {
	t     testing.TB
	out   bytes.Buffer
	w     *Writer
	now   time.Time
	known map[string][]byte
}

func newSession(t testing.TB, objects ...map[string]any) *session {
	t.Helper()
	s := &session{t: t, now: noon(), known: map[string][]byte{}}
	s.w = NewWriter(&s.out, s.now)
	list := []map[string]any{}
	for _, o := range objects {
		list = append(list, o)
		s.known[nameOf(o)] = s.json(o)
	}
	s.must(s.w.AddJSON(ObjectsFile(pods), map[string]any{"apiVersion": "v1", "kind": "PodList", "items": list}))
	s.must(s.w.AddJSON("about.json", About{Format: Format, Taken: s.now}))
	s.must(s.w.Flush())
	return s
}

func (s *session) must(errs ...error) {
	s.t.Helper()
	if err := errors.Join(errs...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *session) json(value any) []byte {
	s.t.Helper()
	raw, err := json.Marshal(value)
	s.must(err)
	return raw
}

func nameOf(o map[string]any) string { return o["metadata"].(map[string]any)["name"].(string) }

func pod(name string, spec any) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"namespace": "shop", "name": name}, "spec": spec}
}

// step writes what has changed a second later: objects, and names of those that are gone.
func (s *session) step(objects []map[string]any, gone ...string) {
	s.t.Helper()
	s.now = s.now.Add(time.Second)
	var list []Change
	for _, o := range objects {
		c := Change{Resource: ResourceName(pods), Namespace: "shop", Name: nameOf(o)}
		raw := s.json(o)
		changed, err := c.Set(s.known[c.Name], raw)
		s.must(err)
		s.known[c.Name] = raw
		if changed {
			list = append(list, c)
		}
	}
	for _, name := range gone {
		delete(s.known, name)
		list = append(list, Change{Resource: ResourceName(pods), Namespace: "shop", Name: name, Gone: true})
	}
	s.must(s.w.AddChanges(s.now, list))
}

func open(t testing.TB, raw []byte) (*Archive, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file.tar.gz")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return Open(t.Context(), file)
}

// names are the pods at a time, with their whole content.
func content(t testing.TB, m Moment) map[string]map[string]any {
	t.Helper()
	list, err := m.list(pods)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string]any{}
	for _, o := range list.Items {
		all[o.GetName()] = o.Object
	}
	return all
}

// random is any value as JSON has them, without nulls in maps.
func random(r *rand.Rand, depth int) any {
	switch n := r.IntN(7); {
	case n < 2 && depth > 0:
		m := map[string]any{}
		for range r.IntN(4) {
			m[string(rune('a'+r.IntN(4)))] = random(r, depth-1)
		}
		return m
	case n == 2 && depth > 0:
		list := []any{}
		for range r.IntN(3) {
			list = append(list, random(r, depth-1), nil)
		}
		return list
	case n == 3:
		return r.IntN(2) == 0
	case n == 4:
		return int64(r.IntN(3))
	default:
		return strings.Repeat("x", r.IntN(3))
	}
}

// At each time, reached in any order, a file has the objects that there were then: whatever
// they were before, and however often they changed.
func TestObjectsAreThoseOfTheTime(t *testing.T) {
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := newSession(t, pod("p0", random(r, 3)), pod("p1", random(r, 3)))
		var want []map[string][]byte
		keep := func() {
			now := map[string][]byte{}
			for name, raw := range s.known {
				now[name] = raw
			}
			want = append(want, now)
		}
		keep()
		for range 3 * between {
			name := fmt.Sprintf("p%d", r.IntN(6))
			switch {
			case s.known[name] != nil && r.IntN(6) == 0:
				s.step(nil, name)
			case r.IntN(30) == 0:
				s.step(nil)
			default:
				s.step([]map[string]any{pod(name, random(r, 4))})
			}
			keep()
		}
		s.must(s.w.Close())
		a, err := open(t, s.out.Bytes())
		if err != nil || len(a.Times()) != len(want) {
			t.Fatalf("%d times, want %d: %v", len(a.times), len(want), err)
		}
		for range 40 {
			at := r.IntN(len(want))
			got := content(t, a.Moment(at))
			if len(got) != len(want[at]) {
				t.Fatalf("seed %d: at %d there are %d objects, want %d", seed, at, len(got), len(want[at]))
			}
			for name, raw := range want[at] {
				var w map[string]any
				s.must(utiljson.Unmarshal(raw, &w))
				if !reflect.DeepEqual(got[name], w) {
					t.Fatalf("seed %d: at %d %s is\n%v, want\n%v", seed, at, name, got[name], w)
				}
			}
		}
	}
}

// A change is written as what is smaller: the object, or what leads to it.
func TestSmallerIsWritten(t *testing.T) {
	long := strings.Repeat("long", 100)
	before, after := []byte(`{"a":"`+long+`","b":1}`), []byte(`{"a":"`+long+`","b":2}`)
	var c Change
	if changed, err := c.Set(before, after); err != nil || !changed || string(c.Patch) != `{"b":2}` || c.Object != nil {
		t.Errorf("%+v, %v", c, err)
	}
	c = Change{}
	if changed, err := c.Set([]byte(`{"a":1,"b":2,"c":3}`), []byte(`{"x":1}`)); err != nil || !changed || string(c.Object) != `{"x":1}` || c.Patch != nil {
		t.Errorf("%+v, %v", c, err)
	}
	if changed, err := c.Set(before, before); err != nil || changed {
		t.Errorf("nothing has changed: %t, %v", changed, err)
	}
}

// A recording that is cut off anywhere, as by a kill, has all the times that were written
// before; one that is cut off before its first time is refused.
func TestCutOff(t *testing.T) {
	s := newSession(t, pod("p0", "x"))
	begun := s.out.Len()
	ends := []int{begun}
	for i := range 5 {
		s.step([]map[string]any{pod(fmt.Sprintf("p%d", i), strings.Repeat("y", i))})
		ends = append(ends, s.out.Len())
	}
	raw := bytes.Clone(s.out.Bytes())
	for cut := 0; cut <= len(raw); cut += 5 {
		whole := 0
		for _, end := range ends {
			if cut >= end {
				whole++
			}
		}
		a, err := open(t, raw[:cut])
		if whole == 0 {
			if a != nil && len(a.Times()) != 1 || a == nil && err == nil {
				t.Errorf("cut off at %d, before the objects are whole: %+v", cut, a)
			}
			continue
		}
		if err != nil || len(a.Times()) < whole || len(a.Times()) > whole+1 {
			t.Fatalf("cut off at %d of %d it has %d times, want %d: %v", cut, len(raw), len(a.Times()), whole, err)
		}
		content(t, a.End())
	}
}

// A file shows any time between its first and its last, and no other.
func TestAt(t *testing.T) {
	s := newSession(t, pod("p0", "x"))
	s.step([]map[string]any{pod("p1", "x")})
	s.step([]map[string]any{pod("p2", "x")})
	s.must(s.w.Close())
	a, err := open(t, s.out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for after, want := range map[time.Duration]int{0: 1, 999 * time.Millisecond: 1, time.Second: 2, 1500 * time.Millisecond: 2, 2 * time.Second: 3} {
		m, err := a.At(noon().Add(after))
		if err != nil || len(content(t, m)) != want || !m.Now.Equal(noon().Add(after)) {
			t.Errorf("after %s: %v, %v", after, m, err)
		}
	}
	for _, after := range []time.Duration{-time.Nanosecond, 2*time.Second + time.Nanosecond} {
		if _, err := a.At(noon().Add(after)); err == nil || !strings.Contains(err.Error(), "it goes from 2026-03-01T12:00:00Z to 2026-03-01T12:00:02Z") {
			t.Errorf("after %s: %v", after, err)
		}
	}
}

// What comes from anybody is refused with what is wrong, at the latest where it is shown.
func TestHostileChanges(t *testing.T) {
	at := func(text string) string { return `{"at":"2026-03-01T12:00:01Z","changes":[` + text + `]}` }
	for text, want := range map[string]string{
		`{`:                                  "unexpected end of JSON",
		`{"at":"9999-12-31T23:59:59-12:00"}`: "in the year 10000",
		`{}`:                                 "in the year 1",
		`{"at":"2026-03-01T11:59:59Z"}`:      "before the last one",
		at(`{"resource":"core_v1_secrets","name":"x","gone":true}`):                                             "no list of",
		at(`{"resource":"core_v1_pods","gone":true}`):                                                           "no one thing",
		at(`{"resource":"core_v1_pods","name":"p0"}`):                                                           "no one thing",
		at(`{"resource":"core_v1_pods","name":"p0","gone":true,"patch":{}}`):                                    "no one thing",
		at(`{"resource":"core_v1_pods","namespace":"shop","name":"p9","patch":{}}`):                             "is missing",
		at(`{"resource":"core_v1_pods","namespace":"shop","name":"p0","patch":7}`):                              "cannot unmarshal",
		at(`{"resource":"core_v1_pods","namespace":"shop","name":"p0","patch":{"metadata":{"name":"p1"}}}`):     "has become",
		at(`{"resource":"core_v1_pods","namespace":"shop","name":"p0","patch":{"metadata":7}}`):                 "without a name",
		at(`{"resource":"core_v1_pods","namespace":"shop","name":"p0","object":{"metadata":{"name":"other"}}}`): "has become",
		at(strings.Repeat(`{},`, 1<<20) + `{}`):                                                                 "too much for its size",
	} {
		s := newSession(t, pod("p0", map[string]any{}))
		s.must(s.w.Add("changes/1.json", int64(len(text)), strings.NewReader(text)), s.w.Close())
		a, err := open(t, s.out.Bytes())
		if err == nil {
			_, err = a.End().list(pods)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: %v, want %q", text, err, want)
		}
	}
}

// A few bytes that copy a large object again and again are refused, too.
func TestCopiesArePaidFor(t *testing.T) {
	large := map[string]any{}
	for i := range 20000 {
		large[fmt.Sprint(i)] = i
	}
	s := newSession(t, pod("p0", large))
	var list []Change
	for i := range 20000 {
		list = append(list, Change{Resource: ResourceName(pods), Namespace: "shop", Name: "p0", Patch: []byte(fmt.Sprintf(`{"spec":{"0":%d}}`, i%2))})
	}
	s.must(s.w.AddChanges(s.now, list), s.w.Close())
	a, err := open(t, s.out.Bytes())
	if err == nil {
		_, err = a.End().list(pods)
	}
	if err == nil || !strings.Contains(err.Error(), "too much for its size") {
		t.Errorf("it is read: %v", err)
	}
}

// A recording of views, as older programs wrote them, is named as what it is.
func TestOldRecordings(t *testing.T) {
	var out bytes.Buffer
	w := NewWriter(&out, noon())
	if _, err := w.zip.Write([]byte(`{"moorageRecording":1}` + "\n")); err != nil {
		t.Fatal(err)
	}
	if err := w.zip.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, out.Bytes()); err == nil || !strings.Contains(err.Error(), "recording of an older kubectl moorage") {
		t.Errorf("%v", err)
	}
}

// BenchmarkScrub goes to any of 10,000 times of a file.
func BenchmarkScrub(b *testing.B) {
	var objects []map[string]any
	for i := range 1000 {
		objects = append(objects, pod(fmt.Sprintf("p%04d", i), map[string]any{"nodeName": "n", "text": strings.Repeat("x", 2000)}))
	}
	s := newSession(b, objects...)
	for i := range 10000 {
		s.step([]map[string]any{pod(fmt.Sprintf("p%04d", i%1000), map[string]any{"nodeName": fmt.Sprint(i), "text": strings.Repeat("x", 2000)})})
	}
	s.must(s.w.Close())
	b.ReportMetric(float64(s.out.Len()), "bytes")
	a, err := open(b, s.out.Bytes())
	s.must(err)
	content(b, a.End())
	r := rand.New(rand.NewPCG(1, 1))
	for b.Loop() {
		content(b, a.Moment(r.IntN(len(a.times))))
	}
}

// The times of a name are those at which an object has changed that has it, also if only
// something else of the object changed.
func TestNaming(t *testing.T) {
	s := newSession(t, pod("p0", map[string]any{"claim": "data", "text": strings.Repeat("x", 200)}), pod("p1", "x"))
	s.step([]map[string]any{pod("p0", map[string]any{"claim": "data", "text": strings.Repeat("x", 200), "phase": "Running"})})
	s.step([]map[string]any{pod("p1", "y")})
	s.step([]map[string]any{pod("p2", []any{"disk.example.com^data"})})
	s.step([]map[string]any{pod("p3", "data-2")})
	s.step(nil, "p0")
	s.must(s.w.Close())
	a, err := open(t, s.out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := a.Naming([]string{"data"}), []bool{false, true, false, true, false, true}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
