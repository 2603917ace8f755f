// SPDX-License-Identifier: Apache-2.0

// Command hello stands in for the plugin, whose build takes long.
package main

import "fmt"

func main() { fmt.Println("hello") }
