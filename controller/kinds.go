// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/internal/watch"
)

// hearsEvery is about the interval of new attempts to read NodeMountReports.
const hearsEvery = time.Minute

// kinds lacks NodeMountReports if their definition is missing, or an old role does not permit them. Then
// nodes are not heard, and reports that an AttachPolicy requires count as missing. An unreachable API
// server is assumed to serve them.
func (c Config) kinds(ctx context.Context, moorage client.Interface) (kinds []watch.Kind, hears bool) {
	if err := c.unheard(ctx, moorage); err != nil {
		klog.FromContext(ctx).Info("What nodes say themselves is not observed: NodeMountReports can't be read", "error", err.Error())
		return watch.AllKinds(), false
	}
	return append(watch.AllKinds(), watch.NodeWords), true
}

// unheard is why NodeMountReports can't be read; nil: they can, or it is unknown.
func (c Config) unheard(ctx context.Context, moorage client.Interface) error {
	ctx, cancel := context.WithTimeout(ctx, c.WriteTimeout)
	defer cancel()
	_, err := moorage.NodeMountReports().List(ctx, metav1.ListOptions{Limit: 1})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return err
	}
	return nil
}

// awaitNodeWords ends a process that could not read NodeMountReports at its start, once it can: the role or
// definition came later. It returns when ctx is done.
func (c Config) awaitNodeWords(ctx context.Context, moorage client.Interface, every time.Duration, end context.CancelFunc) {
	err := wait.PollUntilContextCancel(ctx, wait.Jitter(every, 1), false, func(ctx context.Context) (bool, error) {
		_, err := moorage.NodeMountReports().List(ctx, metav1.ListOptions{Limit: 1})
		return err == nil, nil
	})
	if err == nil {
		klog.FromContext(ctx).Info("NodeMountReports can be read now: ending, so that what nodes say is observed from the next start")
		end()
	}
}
