// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/controller/attacher/decide"
	"github.com/moorage-dev/moorage/internal/convert"
)

// Reason is an error's text, cut to the API's limit, and its gRPC code if any.
func Reason(err error) decide.Reason {
	if err == nil {
		return decide.Reason{}
	}
	r := decide.Reason{Message: shortened(err.Error())}
	if s, ok := status.FromError(err); ok {
		r.Code = s.Code()
	}
	return r
}

// VolumeError is a reason in the API's form.
func VolumeError(r decide.Reason, now time.Time) *storagev1.VolumeError {
	e := &storagev1.VolumeError{Message: r.Message, Time: metav1.NewTime(now)}
	if r.Code != codes.OK {
		code := int32(r.Code)
		e.ErrorCode = &code
	}
	return e
}

func reasonOf(e *storagev1.VolumeError) decide.Reason {
	if e == nil {
		return decide.Reason{}
	}
	return decide.Reason{Message: e.Message, Code: codes.Code(convert.ErrorCode(e))}
}

// mark is a digest of others' metadata on a VolumeAttachment, without the attacher's stamps.
func mark(va *storagev1.VolumeAttachment, finalizer string) string {
	annotations := maps.Clone(va.Annotations)
	delete(annotations, convert.AnnotationNodeID)
	finalizers := slices.DeleteFunc(slices.Clone(va.Finalizers), func(f string) bool { return f == finalizer })
	digest := fnv.New64a()
	fmt.Fprint(digest, va.Labels, annotations, finalizers) // maps print sorted
	return fmt.Sprintf("%x", digest.Sum64())
}
