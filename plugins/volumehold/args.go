// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/moorage-dev/moorage/api/config/v1alpha1"
	"github.com/moorage-dev/moorage/internal/rules"
)

// kube-scheduler passes unknown plugins' args unchanged. An unknown field, or a value out of bounds, is an
// error.
func decode(args runtime.Object) (v1alpha1.VolumeHoldArgs, error) {
	var given v1alpha1.VolumeHoldArgs
	switch args := args.(type) {
	case nil:
	case *v1alpha1.VolumeHoldArgs:
		given = *args
	case *runtime.Unknown:
		if err := yaml.UnmarshalStrict(args.Raw, &given); err != nil {
			return given, fmt.Errorf("args of plugin %s in pluginConfig: %w", Name, err)
		}
	default:
		return given, fmt.Errorf("args of plugin %s in pluginConfig are a %T, want %s", Name, args, v1alpha1.KindVolumeHoldArgs)
	}
	full := given.WithDefaults()
	if err := full.Validate(); err != nil {
		return full, fmt.Errorf("args of plugin %s in pluginConfig: %w", Name, err)
	}
	return full, nil
}

func weightsOf(args v1alpha1.VolumeHoldArgs) rules.Weights {
	return rules.Weights{Held: *args.Weights.Held, Near: *args.Weights.Near, Balance: *args.Weights.Balance}
}
