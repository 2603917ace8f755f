// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// webhookDenied begins the message of every denial of an admission webhook, with any code and reason
// (k8s.io/apiserver, admission/plugin/webhook/errors).
const webhookDenied = `admission webhook "`

// Denied says whether an API server refused a write because a webhook or a policy denies it, or because
// the object would be invalid: the same write is refused again. A JSON Patch with a failed test is also
// answered with 422, without an object and a cause (endpoints/handlers/patch.go).
func Denied(err error) bool {
	var refused apierrors.APIStatus
	if !errors.As(err, &refused) {
		return false
	}
	status := refused.Status()
	if strings.HasPrefix(status.Message, webhookDenied) {
		return true
	}
	details := status.Details
	return status.Reason == metav1.StatusReasonInvalid && details != nil && (details.Name != "" || len(details.Causes) > 0)
}

// TestFailed says whether an API server refused a JSON Patch because the object is not
// what a test of the patch expects.
func TestFailed(err error) bool { return apierrors.IsInvalid(err) && !Denied(err) }
