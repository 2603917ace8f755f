// SPDX-License-Identifier: Apache-2.0

//go:build kubernetes1.36

package upstream

import (
	"context"

	internalapi "k8s.io/cri-api/pkg/apis"
	remote "k8s.io/cri-client/pkg"
)

func runtimeService(ctx context.Context, endpoint string) (internalapi.RuntimeService, error) {
	return remote.NewRemoteRuntimeService(ctx, endpoint, runtimeConnectTimeout, nil, false)
}
