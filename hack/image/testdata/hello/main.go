// SPDX-License-Identifier: Apache-2.0

// Command hello says who runs it, and what the linker told it. It fails if it is
// asked to.
package main

import (
	"fmt"
	"os"
)

// linked is set by the linker.
var linked string

func main() {
	if len(os.Args) > 1 && os.Args[1] == "fail" {
		os.Exit(3)
	}
	fmt.Printf("hello %v, linked by %s\n", os.Args[1:], linked)
}
