// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestObjectsWithoutName(t *testing.T) {
	resource := schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "volumeattachments"}
	for metadata, want := range map[string]int{`{"name":"a"}`: 200, `{"name":""}`: 500, `{}`: 500, `null`: 500, `{"name":7}`: 500} {
		file := ObjectsFile(resource)
		raw := `{"apiVersion":"storage.k8s.io/v1","kind":"VolumeAttachmentList","items":[{"apiVersion":"storage.k8s.io/v1","kind":"VolumeAttachment","metadata":` + metadata + `}]}`
		a := &Archive{files: map[string][]byte{file: []byte(raw)}, lists: map[string]*unstructured.UnstructuredList{}}
		answer := httptest.NewRecorder()
		NewServer(a).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/apis/storage.k8s.io/v1/volumeattachments", nil))
		if answer.Code != want || want != 200 && !strings.Contains(answer.Body.String(), "without a name") {
			t.Errorf("metadata %s: %d, %s", metadata, answer.Code, answer.Body)
		}
	}
}

// An impossible name could do harm in a shell.
func TestImpossibleNames(t *testing.T) {
	for group, objects := range map[string]map[string]int{
		"": {
			`{"metadata":{"name":"worker-1.example"},"spec":{"nodeName":"worker-1"}}`:       200,
			`{"metadata":{"name":"w;touch${IFS}pwned;#"}}`:                                  500,
			`{"metadata":{"name":"a","namespace":"s;$(id)"}}`:                               500,
			`{"metadata":{"name":"a"},"spec":{"nodeName":"$(id)"}}`:                         500,
			`{"metadata":{"name":"a"},"spec":{"volumes":[{"x":{"claimName":"b;reboot"}}]}}`: 500,
		},
		"rbac.authorization.k8s.io": {`{"metadata":{"name":"system:node"}}`: 200},
	} {
		for object, want := range objects {
			resource := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "things"}
			version, path := "v1", "/api/v1/things"
			if group != "" {
				version, path = group+"/v1", "/apis/"+group+"/v1/things"
			}
			kind := `"apiVersion":"` + version + `","kind":"Thing`
			file, raw := ObjectsFile(resource), []byte(`{`+kind+`List","items":[{`+kind+`",`+object[1:]+`]}`)
			a := &Archive{files: map[string][]byte{file: raw}, lists: map[string]*unstructured.UnstructuredList{}}
			answer := httptest.NewRecorder()
			NewServer(a).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
			if answer.Code != want || want != 200 && !strings.Contains(answer.Body.String(), "no API server lets pass") {
				t.Errorf("%s: %d, %s", object, answer.Code, answer.Body)
			}
		}
	}
}
