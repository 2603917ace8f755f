// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// An object without a name, which no API server has, is refused where the file is read.
func TestObjectsWithoutName(t *testing.T) {
	resource := schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "volumeattachments"}
	for metadata, want := range map[string]int{`{"name":"a"}`: 200, `{"name":""}`: 500, `{}`: 500, `null`: 500, `{"name":7}`: 500} {
		a := &Archive{files: map[string][]byte{ObjectsFile(resource): []byte(`{"apiVersion":"storage.k8s.io/v1","kind":"VolumeAttachmentList","items":[{"apiVersion":"storage.k8s.io/v1","kind":"VolumeAttachment","metadata":` + metadata + `}]}`)}}
		answer := httptest.NewRecorder()
		NewServer(a).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/apis/storage.k8s.io/v1/volumeattachments", nil))
		if answer.Code != want || want != 200 && !strings.Contains(answer.Body.String(), "without a name") {
			t.Errorf("metadata %s: %d, %s", metadata, answer.Code, answer.Body)
		}
	}
}
