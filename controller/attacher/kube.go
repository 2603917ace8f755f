// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/moorage-dev/moorage/internal/connect"
)

const clientName = "moorage-attacher"

func restConfig(c Config) (*rest.Config, error) {
	config, err := connect.Rest(c.Kubeconfig, clientName)
	if err != nil {
		return nil, err
	}
	config = connect.Protobuf(config)
	config.QPS, config.Burst = float32(c.QPS), c.Burst
	if c.QPS == 0 {
		config.QPS = -1 // no client-side limit
	}
	return config, nil
}

// parallelRequests exceeds an API server's fair share for a client, but not a connection's limit.
const parallelRequests = 64

type kubeAPI struct {
	client kubernetes.Interface
	room   chan struct{}
}

func newKubeAPI(client kubernetes.Interface) *kubeAPI {
	return &kubeAPI{client: client, room: make(chan struct{}, parallelRequests)}
}

func (k *kubeAPI) enter(ctx context.Context) (leave func(), err error) {
	select {
	case k.room <- struct{}{}:
		return func() { <-k.room }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for other requests to the API server: %w", ctx.Err())
	}
}

func (k *kubeAPI) PatchAttachment(ctx context.Context, name string, patch []byte, status bool) (*storagev1.VolumeAttachment, error) {
	leave, err := k.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var subresources []string
	if status {
		subresources = []string{"status"}
	}
	return k.client.StorageV1().VolumeAttachments().Patch(ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{}, subresources...)
}

func (k *kubeAPI) GetAttachment(ctx context.Context, name string) (*storagev1.VolumeAttachment, error) {
	leave, err := k.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return k.client.StorageV1().VolumeAttachments().Get(ctx, name, metav1.GetOptions{})
}

func (k *kubeAPI) PatchPersistentVolume(ctx context.Context, name string, patch []byte) (*corev1.PersistentVolume, error) {
	leave, err := k.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return k.client.CoreV1().PersistentVolumes().Patch(ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{})
}

func (k *kubeAPI) GetPersistentVolume(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	leave, err := k.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	return k.client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
}

func (k *kubeAPI) GetSecret(ctx context.Context, namespace, name string) (map[string]string, error) {
	leave, err := k.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	secret, err := k.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	values := make(map[string]string, len(secret.Data))
	for key, value := range secret.Data {
		values[key] = string(value)
	}
	return values, nil
}
