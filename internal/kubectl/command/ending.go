// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Ending is the error for a file to write, named by a flag, whose ending is none of those that
// what is written has; nil for a name without an ending, and for one of a device or pipe.
func Ending(flag, file, what string, endings ...string) error {
	ending := filepath.Ext(file)
	if ending == "" || slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(file, e) }) {
		return nil
	}
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return nil
	}
	return fmt.Errorf("%s %s: the file is %s: use the ending %s, or none", flag, file, what, strings.Join(endings, " or "))
}
