// SPDX-License-Identifier: Apache-2.0

package promptbinding

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/util/feature"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	configv1 "k8s.io/kubernetes/pkg/scheduler/apis/config/v1"
	plfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"
	"sigs.k8s.io/yaml"
)

// Name is the plugin's name in profiles.
const Name = "PromptVolumeBinding"

// PromptVolumeBinding is upstream's VolumeBinding with a prompt binder.
type PromptVolumeBinding struct {
	*volumebinding.VolumeBinding
}

// Name returns the plugin's name.
func (*PromptVolumeBinding) Name() string { return Name }

// New makes the plugin. Its args are VolumeBinding's, under this plugin's name in pluginConfig.
func New(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	full, err := decode(args)
	if err != nil {
		return nil, err
	}
	made, err := volumebinding.New(ctx, full, handle, plfeature.NewSchedulerFeaturesFromGates(feature.DefaultFeatureGate))
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", Name, err)
	}
	upstream, ok := made.(*volumebinding.VolumeBinding)
	if !ok {
		return nil, fmt.Errorf("plugin %s: kube-scheduler's VolumeBinding is a %T", Name, made)
	}
	changes, err := newChanges(handle.SharedInformerFactory())
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", Name, err)
	}
	upstream.Binder = &binder{
		SchedulerVolumeBinder: upstream.Binder, changes: changes, facts: factsOf(handle.SharedInformerFactory()),
	}
	return &PromptVolumeBinding{upstream}, nil
}

// decode returns complete args: kube-scheduler passes unknown plugins' args unchanged.
func decode(args runtime.Object) (*config.VolumeBindingArgs, error) {
	var given schedulerv1.VolumeBindingArgs
	switch args := args.(type) {
	case nil:
	case *config.VolumeBindingArgs:
		return args, nil
	case *runtime.Unknown:
		if err := yaml.UnmarshalStrict(args.Raw, &given); err != nil {
			return nil, fmt.Errorf("args of plugin %s in pluginConfig: %w", Name, err)
		}
	default:
		return nil, fmt.Errorf("args of plugin %s in pluginConfig are a %T, want VolumeBindingArgs", Name, args)
	}
	configv1.SetDefaults_VolumeBindingArgs(&given)
	var full config.VolumeBindingArgs
	if err := configv1.Convert_v1_VolumeBindingArgs_To_config_VolumeBindingArgs(&given, &full, nil); err != nil {
		return nil, fmt.Errorf("args of plugin %s in pluginConfig: %w", Name, err)
	}
	return &full, nil
}
