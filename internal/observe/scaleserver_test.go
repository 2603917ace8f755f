// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// scaleServer answers the informers' first watches with copies of samples. It
// keeps no objects, so that what is live after a start is the observer's.
type scaleServer struct {
	kinds  map[string]scaleKind
	ending chan struct{}
}

func startScaleServer(b *testing.B) string {
	s := &scaleServer{kinds: scaleKinds(), ending: make(chan struct{})}
	server := httptest.NewServer(s)
	b.Cleanup(func() { close(s.ending); server.CloseClientConnections(); server.Close() })
	return server.URL
}

// ServeHTTP implements http.Handler. Lists are only asked for to learn where
// the server is.
func (s *scaleServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") == "" {
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1000000001"},"items":[]}`)
		return
	}
	kind := s.kinds[r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]]
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
	for i := range kind.count {
		// Numbers are all of one length, so that a binary text stays what it is.
		number, node := fmt.Sprintf("%09d", i), fmt.Sprintf("%09d", i%scaleNodes)
		pairs := []string{itsNumber, number, itsNode, node}
		if kind.also != nil {
			pairs = append(pairs, kind.also(i)...)
		}
		fmt.Fprint(w, strings.NewReplacer(pairs...).Replace(sample))
	}
	fmt.Fprint(w, last)
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
	select {
	case <-r.Context().Done():
	case <-s.ending:
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

// scaleKind is how many objects of a kind there are, and one of them.
type scaleKind struct {
	count int
	// also lists what else is put for what in the object of a number, in pairs.
	also   func(number int) []string
	gvk    schema.GroupVersionKind
	object runtime.Object
}
