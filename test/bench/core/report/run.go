// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Run fails if the command ran no benchmark.
func Run(ctx context.Context, command []string, show io.Writer) ([]Benchmark, error) {
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdout = io.MultiWriter(&output, show)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(command, " "), err)
	}
	benchmarks, err := Parse(&output)
	if err != nil {
		return nil, err
	}
	if len(benchmarks) == 0 {
		return nil, errors.New("no benchmark ran: is the pattern right?")
	}
	return benchmarks, nil
}
