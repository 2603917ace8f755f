// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/moorage-dev/moorage/internal/kubectl/unpack"
)

// An object without a name, which no API server has, is refused where the file is read.
func TestObjectsWithoutName(t *testing.T) {
	resource := schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "volumeattachments"}
	for metadata, want := range map[string]int{`{"name":"a"}`: 200, `{"name":""}`: 500, `{}`: 500, `null`: 500, `{"name":7}`: 500} {
		file := ObjectsFile(resource)
		raw := `{"apiVersion":"storage.k8s.io/v1","kind":"VolumeAttachmentList","items":[{"apiVersion":"storage.k8s.io/v1","kind":"VolumeAttachment","metadata":` + metadata + `}]}`
		a := &Archive{times: []time.Time{time.Unix(0, 0)}, courses: map[string]*course{file: {file: file, raw: []byte(raw), budget: unpack.Of(0)}}}
		answer := httptest.NewRecorder()
		NewServer(a.End()).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/apis/storage.k8s.io/v1/volumeattachments", nil))
		if answer.Code != want || want != 200 && !strings.Contains(answer.Body.String(), "without a name") {
			t.Errorf("metadata %s: %d, %s", metadata, answer.Code, answer.Body)
		}
	}
}
