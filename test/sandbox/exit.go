// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Exit ends a pod's containers with exit code 0. The kubelet finds out by itself.
func (c *Cluster) Exit(ctx context.Context, pod *corev1.Pod) error {
	if err := c.isNode(pod.Spec.NodeName); err != nil {
		return err
	}
	conn, err := grpc.NewClient("unix://"+filepath.Join(c.KubeletFolder(pod.Spec.NodeName), runtimeSocket), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("reach the container runtime of %s: %w", pod.Spec.NodeName, err)
	}
	defer conn.Close()
	for _, status := range pod.Status.ContainerStatuses {
		_, id, ok := strings.Cut(status.ContainerID, "://")
		if !ok {
			return fmt.Errorf("container %s of pod %s has not been started", status.Name, pod.Name)
		}
		if _, err := cri.NewRuntimeServiceClient(conn).StopContainer(ctx, &cri.StopContainerRequest{ContainerId: id}); err != nil {
			return fmt.Errorf("end container %s of pod %s: %w", status.Name, pod.Name, err)
		}
	}
	return nil
}

const runtimeSocket = "cri.sock"
