// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// scaleServer answers first watches with copies of samples. It keeps no objects: the live memory is the
// observer's.
type scaleServer struct {
	scale
	kinds   map[string]scaleKind
	ending  chan struct{}
	changes chan int
}

func startScaleServer(b *testing.B, size scale) (*scaleServer, string) {
	s := &scaleServer{scale: size, kinds: size.kinds(), ending: make(chan struct{}), changes: make(chan int)}
	server := httptest.NewServer(s)
	b.Cleanup(func() { close(s.ending); server.CloseClientConnections(); server.Close() })
	return s, server.URL
}

func (s *scaleServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") == "" {
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1000000001"},"items":[]}`)
		return
	}
	resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	kind := s.kinds[resource]
	encode := protobufEvent
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf+";stream=watch")
	if kind.gvk.GroupVersion() == v1alpha1.SchemeGroupVersion {
		encode = jsonEvent
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	}
	mark := kind.object.DeepCopyObject()
	if m, ok := mark.(metav1.Object); ok {
		m.SetResourceVersion("2000000000")
		m.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	sample, last := encode("ADDED", kind.object), encode("BOOKMARK", mark)
	form := s.form(kind, sample)
	for i := range kind.count {
		_, _ = w.Write(form.numbered(i))
	}
	fmt.Fprint(w, last)
	flush(w)
	var changes chan int
	if resource == "volumeattachments" {
		changes = s.changes
	}
	for {
		select {
		case <-r.Context().Done():
			return
		case <-s.ending:
			return
		case n := <-changes:
			s.change(w, kind, n)
		}
	}
}

// An object's numbers have one length, so that binary text stays valid. It makes almost no garbage.
type form struct {
	text    []byte
	numbers func(number int) []string
	places  [][]int
}

func (s *scaleServer) form(kind scaleKind, sample string) *form {
	f := &form{text: []byte(sample), numbers: func(i int) []string {
		pairs := []string{itsNumber, fmt.Sprintf("%09d", i), itsNode, fmt.Sprintf("%09d", i%s.nodes)}
		if kind.also != nil {
			pairs = append(pairs, kind.also(i)...)
		}
		return pairs
	}}
	pairs := f.numbers(0)
	for n := 0; n < len(pairs); n += 2 {
		var places []int
		for at := 0; ; at += len(pairs[n]) {
			next := strings.Index(sample[at:], pairs[n])
			if next < 0 {
				break
			}
			at += next
			places = append(places, at)
		}
		f.places = append(f.places, places)
	}
	return f
}

// The result is valid until the next call.
func (f *form) numbered(i int) []byte {
	pairs := f.numbers(i)
	for n, places := range f.places {
		for _, at := range places {
			copy(f.text[at:], pairs[2*n+1])
		}
	}
	return f.text
}

func (s *scaleServer) change(w http.ResponseWriter, kind scaleKind, n int) {
	changed, _ := kind.object.DeepCopyObject().(*storagev1.VolumeAttachment)
	changed.Status.Attached = false
	changed.ResourceVersion = "3" + itsNumber
	form := s.form(kind, protobufEvent("MODIFIED", changed))
	for i := range n {
		_, _ = w.Write(form.numbered(i * (kind.count / n)))
	}
	flush(w)
}

func flush(w http.ResponseWriter) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

func jsonEvent(kind string, object runtime.Object) string {
	raw, err := json.Marshal(object)
	if err != nil {
		panic(err) // a sample that is none
	}
	return fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", kind, raw)
}

func protobufEvent(kind string, object runtime.Object) string {
	var embedded, event bytes.Buffer
	err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(object, &embedded)
	if err == nil {
		err = protobuf.NewRawSerializer(scheme.Scheme, scheme.Scheme).Encode(&metav1.WatchEvent{
			Type: kind, Object: runtime.RawExtension{Raw: embedded.Bytes()},
		}, protobuf.LengthDelimitedFramer.NewFrameWriter(&event))
	}
	if err != nil {
		panic(err) // a sample that is none
	}
	return event.String()
}

type scaleKind struct {
	count  int
	also   func(number int) []string
	gvk    schema.GroupVersionKind
	object runtime.Object
}
