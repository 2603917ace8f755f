// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/moorage-dev/moorage/api/config/v1alpha1"
)

var _ runtime.Object = &v1alpha1.VolumeHoldArgs{}

func TestDefaults(t *testing.T) {
	near := int64(0)
	args := v1alpha1.VolumeHoldArgs{Weights: &v1alpha1.VolumeHoldWeights{Near: &near}}
	full := args.WithDefaults()
	if *full.Weights.Held != 100 || *full.Weights.Near != 0 || *full.Weights.Balance != 20 || full.GrantTimeout.Duration != 30*time.Second {
		t.Errorf("defaults over near=0 give %+v %s", full.Weights, full.GrantTimeout.Duration)
	}
	if args.Weights.Held != nil || args.GrantTimeout != nil {
		t.Error("the original was changed")
	}
	if err := full.Validate(); err != nil {
		t.Errorf("the defaults are not valid: %v", err)
	}
	if none := (*v1alpha1.VolumeHoldArgs)(nil).WithDefaults(); *none.Weights.Near != 60 {
		t.Errorf("defaults of nothing: near is %d", *none.Weights.Near)
	}
	if full.OnControllerDown != "Wait" {
		t.Errorf("onControllerDown is %q by default", full.OnControllerDown)
	}
	ungranted := (&v1alpha1.VolumeHoldArgs{OnControllerDown: "BindUngranted"}).WithDefaults()
	if err := ungranted.Validate(); err != nil || ungranted.OnControllerDown != "BindUngranted" {
		t.Errorf("BindUngranted has become %q: %v", ungranted.OnControllerDown, err)
	}
}

func TestValidate(t *testing.T) {
	foreign := v1alpha1.VolumeHoldArgs{TypeMeta: metav1.TypeMeta{Kind: "NodeAffinityArgs"}}
	if full := foreign.WithDefaults(); full.Validate() == nil {
		t.Error("defaults hide that the args are another plugin's")
	}
	tests := []struct {
		name   string
		change func(*v1alpha1.VolumeHoldArgs)
		want   string // part of the error
	}{
		{"negative weight", func(a *v1alpha1.VolumeHoldArgs) { *a.Weights.Held = -1 }, "weights.held is -1"},
		{"huge weight", func(a *v1alpha1.VolumeHoldArgs) { *a.Weights.Balance = 1001 }, "from 0 to 1000"},
		{"no weight", func(a *v1alpha1.VolumeHoldArgs) { *a.Weights.Held, *a.Weights.Near, *a.Weights.Balance = 0, 0, 0 }, "weights are all 0"},
		{"no time", func(a *v1alpha1.VolumeHoldArgs) { a.GrantTimeout = &metav1.Duration{} }, "grantTimeout is 0s"},
		{"as long as the framework", func(a *v1alpha1.VolumeHoldArgs) { a.GrantTimeout = &metav1.Duration{Duration: 15 * time.Minute} }, "below 15m"},
		{"no such action", func(a *v1alpha1.VolumeHoldArgs) { a.OnControllerDown = "Panic" }, `onControllerDown is "Panic": it must be Wait or BindUngranted`},
		{"another kind", func(a *v1alpha1.VolumeHoldArgs) { a.Kind = "NodeAffinityArgs" }, "leave apiVersion and kind out"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			args := (*v1alpha1.VolumeHoldArgs)(nil).WithDefaults()
			test.change(&args)
			if err := args.Validate(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want one with %q", err, test.want)
			}
		})
	}
}
