// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/moorage-dev/moorage/controller/attacher/objects"
)

// api's errors are the API's own.
type api interface {
	PatchAttachment(ctx context.Context, name string, patch []byte, status bool) (*storagev1.VolumeAttachment, error)
	GetAttachment(ctx context.Context, name string) (*storagev1.VolumeAttachment, error)
	PatchPersistentVolume(ctx context.Context, name string, patch []byte) (*corev1.PersistentVolume, error)
	GetPersistentVolume(ctx context.Context, name string) (*corev1.PersistentVolume, error)
	GetSecret(ctx context.Context, namespace, name string) (map[string]string, error)
}

// backend is the driver. Errors carry gRPC codes.
type backend interface {
	Publish(ctx context.Context, call objects.Call, nodeID string, secrets map[string]string) (map[string]string, error)
	Unpublish(ctx context.Context, call objects.Call, nodeID string, secrets map[string]string) error
	Published(ctx context.Context, handle, nodeID string) (bool, error)
	List(ctx context.Context) (map[string][]string, error)
}

type clock interface {
	Now() time.Time
	// AfterFunc calls f once in another goroutine, unless stop is called first.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
