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

	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// attachments is a list of Longhorn's VolumeAttachments, none of them read yet: one that does not parse is
// told, and keeps nobody from the others.
type attachments struct {
	Items []json.RawMessage `json:"items"`
}

// named is what a VolumeAttachment of Longhorn's calls itself.
type named struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
}

// attachment is what matters of a VolumeAttachment of Longhorn's.
type attachment struct {
	Spec struct {
		Volume  string                     `json:"volume"`
		Tickets map[string]json.RawMessage `json:"attachmentTickets"`
	} `json:"spec"`
}

// attachmentTicket is what matters of an attachment ticket of Longhorn's.
type attachmentTicket struct {
	Type       string            `json:"type"`
	NodeID     string            `json:"nodeID"`
	Parameters map[string]string `json:"parameters"`
}

// readLonghorn reads the attachment tickets of the namespace that Longhorn runs in, and what of them can't
// be read. Longhorn reads its kind in no other namespace: there it is anybody's word.
func readLonghorn(ctx context.Context, kube kubernetes.Interface, namespace string) ([]facts.LonghornTicket, []facts.Import, error) {
	raw, err := kube.CoreV1().RESTClient().Get().AbsPath("/apis/longhorn.io/v1beta2/namespaces", namespace, "volumeattachments").DoRaw(ctx)
	if apierrors.IsNotFound(err) {
		return nil, nil, fmt.Errorf("the cluster does not serve volumeattachments.longhorn.io/v1beta2: is Longhorn 1.5 or later installed? %w", err)
	}
	if err != nil {
		return nil, nil, command.Failed("list Longhorn's VolumeAttachments", "list volumeattachments.longhorn.io -n "+namespace, err)
	}
	return parseLonghorn(raw, namespace)
}

func parseLonghorn(raw []byte, namespace string) ([]facts.LonghornTicket, []facts.Import, error) {
	var list attachments
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, nil, fmt.Errorf("read Longhorn's VolumeAttachments: %w", err)
	}
	var tickets []facts.LonghornTicket
	var failed []facts.Import
	for i, item := range list.Items {
		from := fmt.Sprintf("Longhorn VolumeAttachment %d of the list in namespace %q", i+1, namespace)
		var is named
		if json.Unmarshal(item, &is) == nil && is.Metadata.Name != "" {
			from = fmt.Sprintf("Longhorn VolumeAttachment %q in namespace %q", is.Metadata.Name, namespace)
		}
		var a attachment
		if err := json.Unmarshal(item, &a); err != nil {
			failed = append(failed, facts.Import{From: from, Err: fmt.Errorf("it can't be read: %w", err)})
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(a.Spec.Tickets)) {
			var t attachmentTicket
			if err := json.Unmarshal(a.Spec.Tickets[key], &t); err != nil {
				failed = append(failed, facts.Import{From: fmt.Sprintf("%s, ticket %q", from, key), Err: fmt.Errorf("it can't be read: %w", err)})
				continue
			}
			tickets = append(tickets, facts.LonghornTicket{Namespace: namespace, Volume: a.Spec.Volume, Key: key, Type: t.Type, Node: t.NodeID, Parameters: t.Parameters})
		}
	}
	return tickets, failed, nil
}
