// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Problem says why the API server is not heard, within a time; empty when it answers, even
// that one may not ask. Its answer also tells its clock.
func (c *Cluster) Problem(ctx context.Context, within time.Duration) string {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	_, err := c.Kube.Discovery().RESTClient().Get().AbsPath("/version").DoRaw(ctx)
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError && !apierrors.IsUnauthorized(err) {
		return ""
	}
	return "the API server does not answer, what is shown may be old: " + err.Error()
}
