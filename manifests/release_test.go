// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

type release map[string]*unstructured.Unstructured

func renderRelease(t *testing.T, values string) release {
	t.Helper()
	files, err := renderChart(t, values)
	if err != nil {
		t.Fatal(err)
	}
	out := release{}
	for file, text := range files {
		if !strings.HasSuffix(file, ".yaml") {
			continue
		}
		for reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text))); ; {
			document, err := reader.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			object := &unstructured.Unstructured{}
			if err := yaml.UnmarshalStrict(document, &object.Object); err != nil {
				t.Fatalf("%s: %v\n%s", file, err, document)
			}
			if len(object.Object) == 0 {
				continue
			}
			key := fmt.Sprintf("%s/%s/%s", object.GetKind(), object.GetNamespace(), object.GetName())
			if out[key] != nil {
				t.Errorf("there are two %s", key)
			}
			out[key] = object
		}
	}
	return out
}

// A Job can't be changed: the same values give the same Job, and other values another.
func TestTheJobIsNamedByWhatItDoes(t *testing.T) {
	job := func(values string) string {
		for key := range renderRelease(t, "certManager: {enabled: false}\n"+values) {
			if strings.HasPrefix(key, "Job/") {
				return key
			}
		}
		return ""
	}
	first := job("")
	if first == "" || job("") != first {
		t.Errorf("the same values give the Jobs %q and %q", first, job(""))
	}
	if other := job("image: {tag: 9.9.9}"); other == first {
		t.Errorf("another image gives the same Job %q", other)
	}
}
