// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"

	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const imageUser = 65532

// images has every image. A kubelet starts no container with runAsNonRoot if it does not know the user.
type images struct {
	internalapi.ImageManagerService
}

func (i images) ImageStatus(ctx context.Context, image *runtimeapi.ImageSpec, verbose bool) (*runtimeapi.ImageStatusResponse, error) {
	status, err := i.ImageManagerService.ImageStatus(ctx, image, verbose)
	is := status.GetImage()
	if err != nil || is == nil {
		return status, err
	}
	return &runtimeapi.ImageStatusResponse{Info: status.Info, Image: &runtimeapi.Image{
		Id: is.Id, RepoTags: is.RepoTags, RepoDigests: is.RepoDigests, Size: is.Size, Spec: is.Spec, Pinned: is.Pinned,
		Uid: &runtimeapi.Int64Value{Value: imageUser},
	}}, nil
}
