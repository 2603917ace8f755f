// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/moorage-dev/moorage/test/bench/scheduler/result"
)

// renderInto replaces the results in a document by those of a file.
func renderInto(document, from string) error {
	if from == "" {
		return errors.New("--render needs --out: the result to render")
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("result: %w", err)
	}
	r, err := result.Decode(data)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return r.Page().Write(document, result.Render(r))
}
