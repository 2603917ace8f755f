// SPDX-License-Identifier: Apache-2.0

// Command hello says who runs it.
package main

import (
	"fmt"
	"os"
)

func main() { fmt.Println("hello", os.Args[1:]) }
