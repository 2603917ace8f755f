// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// maxNamed bounds the objects that are looked for, one request each.
const maxNamed = 64

// ReadNamed looks which of the ConfigMaps, Secrets and ServiceAccounts exist that pods name whose
// kubelets are about to start them. Only names are read. A file has none of them, and is not asked.
func (c *Cluster) ReadNamed(ctx context.Context, w *facts.World, pods []*corev1.Pod) {
	if c.Kept != nil {
		return
	}
	var objects []facts.NamedObject
	for _, p := range pods {
		if !w.StartsSoon(p) {
			continue
		}
		for _, o := range facts.NamedBy(p) {
			if _, known := w.Evidence.Named[o]; !known && !slices.Contains(objects, o) {
				objects = append(objects, o)
			}
		}
	}
	if w.Evidence.Named == nil {
		w.Evidence.Named = map[facts.NamedObject]facts.Presence{}
	}
	var mu sync.Mutex
	var wait sync.WaitGroup
	for _, o := range objects[:min(len(objects), maxNamed)] {
		wait.Go(func() {
			at := c.presence(ctx, o)
			mu.Lock()
			defer mu.Unlock()
			w.Evidence.Named[o] = at
		})
	}
	wait.Wait()
}

// presence looks whether an object exists. It is listed by its name, so that the right to list is
// all that is needed, as metadata: what a Secret has is not read.
func (c *Cluster) presence(ctx context.Context, o facts.NamedObject) facts.Presence {
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", o.Name).String()}
	raw, err := c.Kube.CoreV1().RESTClient().Get().Namespace(o.Namespace).Resource(o.Kind+"s").
		SpecificallyVersionedParams(&options, metav1.ParameterCodec, metav1.SchemeGroupVersion).
		SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").Do(ctx).Raw()
	if apierrors.IsForbidden(err) {
		return facts.Presence{Unseen: fmt.Sprintf("you may not list them: kubectl auth can-i list %ss -n %s", o.Kind, o.Namespace)}
	}
	var list metav1.PartialObjectMetadataList
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	if err != nil {
		return facts.Presence{Unseen: err.Error()}
	}
	found := slices.ContainsFunc(list.Items, func(i metav1.PartialObjectMetadata) bool { return i.Name == o.Name })
	return facts.Presence{Exists: found, Missing: !found}
}
