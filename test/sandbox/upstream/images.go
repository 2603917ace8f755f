// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"

	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// imageUser is the user of every image: a number that is not root's, as the images of a release have.
const imageUser = 65532

// images is the image service of a fake runtime, which has every image and no user of any. A kubelet starts no
// container with runAsNonRoot whose user it does not know.
type images struct {
	internalapi.ImageManagerService
}

// ImageStatus says besides that the image has a numeric user.
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
