// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"

	"github.com/moorage-dev/moorage/test/bench/scheduler/result"
)

func renderInto(document, from string) error {
	if from == "" {
		return errors.New("--render needs --out: the result to render")
	}
	r, err := result.Read(from)
	if err != nil {
		return err
	}
	return r.Page().Write(document, result.Render(r))
}
