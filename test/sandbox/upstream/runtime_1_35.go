// SPDX-License-Identifier: Apache-2.0

//go:build kubernetes1.34 || kubernetes1.35

package upstream

import (
	"context"

	internalapi "k8s.io/cri-api/pkg/apis"
	remote "k8s.io/cri-client/pkg"
)

func runtimeService(_ context.Context, endpoint string) (internalapi.RuntimeService, error) {
	return remote.NewRemoteRuntimeService(endpoint, runtimeConnectTimeout, nil, nil)
}
