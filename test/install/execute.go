// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

func (s *story) execute(ctx context.Context, env []string, path string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, path, args...)
	command.Dir = s.repository
	command.Env = append(os.Environ(), env...)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	if err := command.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w\n%s", path, strings.Join(args, " "), err, errs.String())
	}
	return out.String(), nil
}
