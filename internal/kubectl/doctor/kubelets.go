// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
)

// Kubelets that are asked, and for how long each may take: nodes of a pool are
// configured alike.
const (
	askedKubelets    = 10
	kubeletsPatience = 3 * time.Second
)

// readKubelets asks a few kubelets for their configuration, through the API
// server. That takes the right to get nodes/proxy, which few should have.
func readKubelets(ctx context.Context, c *cluster.Cluster, e *Evidence) {
	for _, node := range e.World.Nodes {
		if len(e.Kubelets.Items) == askedKubelets || !isReady(node) {
			continue
		}
		e.Asked++
		k, err := askKubelet(ctx, c, node.Name)
		if err != nil {
			e.Kubelets.Err = fmt.Errorf("configz of node %s: %w", node.Name, err)
			if text := unexpected("GET "+configzOf(node.Name), err); text != "" {
				e.Kubelets.Err = errors.New(text)
			}
			return // the others answer no better
		}
		e.Kubelets.Items = append(e.Kubelets.Items, k)
	}
}

// configzOf is the path of the request that the API server passes on to a kubelet.
func configzOf(node string) string { return "/api/v1/nodes/" + node + "/proxy/configz" }

func askKubelet(ctx context.Context, c *cluster.Cluster, node string) (Kubelet, error) {
	ctx, cancel := context.WithTimeout(ctx, kubeletsPatience)
	defer cancel()
	raw, err := c.Kube.CoreV1().RESTClient().Get().SetHeader("Accept", "application/json").Resource("nodes").Name(node).SubResource("proxy").Suffix("configz").DoRaw(ctx)
	if err != nil {
		return Kubelet{}, err
	}
	return parseConfigz(node, raw)
}

// parseConfigz reads what a kubelet says at /configz.
func parseConfigz(node string, raw []byte) (Kubelet, error) {
	var answer struct {
		Config struct {
			Update  metav1.Duration `json:"nodeStatusUpdateFrequency"`
			Report  metav1.Duration `json:"nodeStatusReportFrequency"`
			Managed *bool           `json:"enableControllerAttachDetach"`
		} `json:"kubeletconfig"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return Kubelet{}, fmt.Errorf("its configuration can't be read: %w", err)
	}
	return Kubelet{
		Node: node, NodeStatusUpdateFrequency: answer.Config.Update.Duration, NodeStatusReportFrequency: answer.Config.Report.Duration,
		EnableControllerAttachment: answer.Config.Managed == nil || *answer.Config.Managed,
	}, nil
}

func isReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
