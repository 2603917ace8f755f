// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// webhookDenied begins every denial by an admission webhook, with any code and reason (k8s.io/apiserver,
// admission/plugin/webhook/errors).
const webhookDenied = `admission webhook "`

// Denied: a webhook or policy denies a write, or the object would be invalid: a repetition is refused
// again. A failed test of a JSON Patch also gets 422, without an object and a cause
// (endpoints/handlers/patch.go).
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

// TestFailed says whether a JSON Patch was refused because its test failed.
func TestFailed(err error) bool { return apierrors.IsInvalid(err) && !Denied(err) }
