// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/internal/observe"
)

// kinds are what the controller observes: NodeVolumes, too, but where their definition is
// missing, or a role that is older than this process does not let it read them. Nothing is
// heard of nodes then, and what an AttachPolicy requires them to say counts as not said. An
// API server that can't be reached serves them, as far as is known.
func (c Config) kinds(ctx context.Context, moorage client.Interface) []observe.Kind {
	ctx, cancel := context.WithTimeout(ctx, c.WriteTimeout)
	defer cancel()
	_, err := moorage.NodeVolumes().List(ctx, metav1.ListOptions{Limit: 1})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		klog.FromContext(ctx).Info("What nodes say themselves is not observed: NodeVolumes can't be read", "error", err.Error())
		return observe.AllKinds()
	}
	return append(observe.AllKinds(), observe.NodeWords)
}
