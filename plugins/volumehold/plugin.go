// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Name is the plugin's name in a KubeSchedulerConfiguration.
const Name = "VolumeHold"

// VolumeHold is the plugin in one profile. The framework calls PreFilter to Permit for one pod at a time,
// Filter and Score in parallel, and later steps in a goroutine per pod.
type VolumeHold struct {
	core    *core
	handle  fwk.Handle
	weights rules.Weights
}

var (
	_ fwk.PreEnqueuePlugin         = &VolumeHold{}
	_ fwk.EnqueueExtensions        = &VolumeHold{}
	_ fwk.PreFilterPlugin          = &VolumeHold{}
	_ fwk.PreFilterExtensions      = &VolumeHold{}
	_ fwk.FilterPlugin             = &VolumeHold{}
	_ fwk.PostFilterPlugin         = &VolumeHold{}
	_ fwk.PodGroupPostFilterPlugin = &VolumeHold{}
	_ fwk.PreScorePlugin           = &VolumeHold{}
	_ fwk.ScorePlugin              = &VolumeHold{}
	_ fwk.ReservePlugin            = &VolumeHold{}
	_ fwk.PermitPlugin             = &VolumeHold{}
	_ fwk.BindPlugin               = &VolumeHold{}
	_ fwk.PostBindPlugin           = &VolumeHold{}
	_ fwk.SignPlugin               = &VolumeHold{}
)

// Name returns Name.
func (p *VolumeHold) Name() string { return Name }

// factOf leaves out volumes with a broken source.
func factOf(pod *corev1.Pod) ledger.Pod {
	fact, _ := convert.Pod(pod)
	return fact
}
