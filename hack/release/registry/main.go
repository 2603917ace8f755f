// SPDX-License-Identifier: Apache-2.0

// Command registry is a registry for tests. It prints its name, and serves until its input ends. Like
// ghcr.io, it lists no referrers.
package main

import (
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/registry"
)

func main() {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	fmt.Println(strings.TrimPrefix(server.URL, "http://"))
	_, _ = io.Copy(io.Discard, os.Stdin)
	server.Close()
}
