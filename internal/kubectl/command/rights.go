// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Failed says what was tried and failed and, where that is forbidden, how to ask for the right to it. right is
// what follows kubectl auth can-i, such as "create volumetickets.moorage.dev -n shop".
func Failed(what, right string, err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%s (kubectl auth can-i %s): %w", what, right, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}
