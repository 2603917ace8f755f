// SPDX-License-Identifier: Apache-2.0

//go:build kubernetes1.34 || kubernetes1.35 || kubernetes1.36

package upstream

import (
	"context"
	"errors"

	"k8s.io/kubernetes/pkg/kubemark"
)

func (o nodeOptions) realKubelet(context.Context) (*kubemark.HollowKubelet, error) {
	return nil, errors.New("nodes that run containers are of this tree's release of Kubernetes: leave --kubelets out")
}
