// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/moorage-dev/moorage/api/config/v1alpha1"
	"github.com/moorage-dev/moorage/internal/rules"
)

func TestDecodeArgs(t *testing.T) {
	tests := map[string]struct {
		args runtime.Object
		held int64
		err  string
	}{
		"none":          {nil, 100, ""},
		"empty":         {&runtime.Unknown{}, 100, ""},
		"JSON":          {unknown(`{"weights":{"held":50}}`), 50, ""},
		"YAML":          {unknown("apiVersion: config.moorage.dev/v1alpha1\nkind: VolumeHoldArgs\nweights: {held: 7}\n"), 7, ""},
		"typed":         {&v1alpha1.VolumeHoldArgs{}, 100, ""},
		"unknown field": {unknown(`{"wights":{}}`), 0, "wights"},
		"bad value":     {unknown(`{"weights":{"held":1001}}`), 0, "weights.held is 1001: it must be from 0 to 1000"},
		"bad number":    {unknown(`{"weights":{"held":"much"}}`), 0, "cannot unmarshal string"},
		"another type":  {&corev1.Pod{}, 0, "are a *v1.Pod, want VolumeHoldArgs"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := decode(test.args)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) || !strings.Contains(err.Error(), Name) {
					t.Errorf("the error is %v, want one with %q and the plugin's name", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if *got.Weights.Held != test.held {
				t.Errorf("held is %d, want %d", *got.Weights.Held, test.held)
			}
		})
	}
}

func TestDefaultsAreTheCores(t *testing.T) {
	args, err := decode(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := weightsOf(args); got != rules.DefaultWeights() {
		t.Errorf("weights are %+v, the core's are %+v", got, rules.DefaultWeights())
	}
}

func unknown(raw string) runtime.Object { return &runtime.Unknown{Raw: []byte(raw)} }
