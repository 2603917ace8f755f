// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/moorage-dev/moorage/api/config/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
)

func TestDecodeArgs(t *testing.T) {
	tests := map[string]struct {
		args runtime.Object
		held int64
		wait time.Duration
		err  string
	}{
		"none":          {nil, 100, 30 * time.Second, ""},
		"empty":         {&runtime.Unknown{}, 100, 30 * time.Second, ""},
		"JSON":          {unknown(`{"weights":{"held":50},"grantTimeout":"5s"}`), 50, 5 * time.Second, ""},
		"YAML":          {unknown("apiVersion: config.moorage.dev/v1alpha1\nkind: VolumeHoldArgs\nweights: {held: 7}\n"), 7, 30 * time.Second, ""},
		"typed":         {&v1alpha1.VolumeHoldArgs{}, 100, 30 * time.Second, ""},
		"unknown field": {unknown(`{"wights":{}}`), 0, 0, "wights"},
		"bad value":     {unknown(`{"grantTimeout":"20m"}`), 0, 0, "grantTimeout is 20m0s: it must be above 0s and below 15m0s"},
		"bad duration":  {unknown(`{"grantTimeout":"soon"}`), 0, 0, "soon"},
		"another type":  {&corev1.Pod{}, 0, 0, "are a *v1.Pod, want VolumeHoldArgs"},
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
			if *got.Weights.Held != test.held || got.GrantTimeout.Duration != test.wait {
				t.Errorf("held is %d and grantTimeout %s, want %d and %s", *got.Weights.Held, got.GrantTimeout.Duration, test.held, test.wait)
			}
		})
	}
}

// The API's defaults are the core's.
func TestDefaultsAreTheCores(t *testing.T) {
	args, err := decode(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := weightsOf(args); got != arbiter.DefaultWeights() {
		t.Errorf("weights are %+v, the core's are %+v", got, arbiter.DefaultWeights())
	}
	if got := args.GrantTimeout.Duration; got != arbiter.DefaultGrantTimeout {
		t.Errorf("grantTimeout is %s, the core's is %s", got, arbiter.DefaultGrantTimeout)
	}
}

func unknown(raw string) runtime.Object { return &runtime.Unknown{Raw: []byte(raw)} }
