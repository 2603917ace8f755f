// SPDX-License-Identifier: Apache-2.0

// Command hello replaces a release's programs in tests: it prints its name, arguments and linker variables.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

var linked string

func main() {
	if len(os.Args) > 1 && os.Args[1] == "fail" {
		os.Exit(3)
	}
	fmt.Printf("%s %v, linked by %s\n", filepath.Base(os.Args[0]), os.Args[1:], linked)
}
