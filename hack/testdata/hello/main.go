// SPDX-License-Identifier: Apache-2.0

// Command hello stands in for the programs of a release, whose builds take long: it prints its own
// name, its arguments and the linker's variables. It fails on request.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// linked is set by the linker.
var linked string

func main() {
	if len(os.Args) > 1 && os.Args[1] == "fail" {
		os.Exit(3)
	}
	fmt.Printf("%s %v, linked by %s\n", filepath.Base(os.Args[0]), os.Args[1:], linked)
}
