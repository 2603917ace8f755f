// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"os/exec"
	"runtime"
)

// openBrowser opens a page with what the system opens pages with, and does not wait for it.
func openBrowser(ctx context.Context, url string) error {
	name, args := "xdg-open", []string{url}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", url}
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), name, args...)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // what the browser says is nobody's business
	return nil
}
