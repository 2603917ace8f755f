// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// longhornPath is where the API server has Longhorn's VolumeAttachments of all namespaces.
const longhornPath = "/apis/longhorn.io/v1beta2/volumeattachments"

// attachments is what matters of a list of Longhorn's VolumeAttachments.
type attachments struct {
	Items []struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Spec struct {
			Volume  string `json:"volume"`
			Tickets map[string]struct {
				Type       string            `json:"type"`
				NodeID     string            `json:"nodeID"`
				Parameters map[string]string `json:"parameters"`
			} `json:"attachmentTickets"`
		} `json:"spec"`
	} `json:"items"`
}

// readLonghorn reads Longhorn's attachment tickets.
func readLonghorn(ctx context.Context, kube kubernetes.Interface) ([]facts.LonghornTicket, error) {
	raw, err := kube.CoreV1().RESTClient().Get().AbsPath(longhornPath).DoRaw(ctx)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("the cluster does not serve volumeattachments.longhorn.io/v1beta2: is Longhorn 1.5 or later installed? %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("list Longhorn's VolumeAttachments (kubectl auth can-i list volumeattachments.longhorn.io -A): %w", err)
	}
	return parseLonghorn(raw)
}

func parseLonghorn(raw []byte) ([]facts.LonghornTicket, error) {
	var list attachments
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("read Longhorn's VolumeAttachments: %w", err)
	}
	var tickets []facts.LonghornTicket
	for _, item := range list.Items {
		for _, key := range slices.Sorted(maps.Keys(item.Spec.Tickets)) {
			t := item.Spec.Tickets[key]
			tickets = append(tickets, facts.LonghornTicket{Volume: item.Spec.Volume, Key: key, Type: t.Type, Node: t.NodeID, Parameters: t.Parameters})
		}
	}
	return tickets, nil
}
