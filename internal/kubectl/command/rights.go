// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Failed says what was tried and failed and, where the right to it is missing, how to ask for that. right is what
// follows kubectl auth can-i, such as "create volumetickets.moorage.dev -n shop". A quota and an admission policy
// forbid, too; only a missing right is told as what the user can't do (apiserver, endpoints/filters/authorization.go).
func Failed(what, right string, err error) error {
	verb, _, _ := strings.Cut(right, " ")
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot "+verb+" resource") {
		return fmt.Errorf("%s (kubectl auth can-i %s): %w", what, right, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}
