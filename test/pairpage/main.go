// SPDX-License-Identifier: Apache-2.0

// Pairpage serves the page of moorage-sandbox demo --web for API servers that run elsewhere,
// so that a browser test needs no real clusters. Each line of its input is told on the page:
// that of a side after "0 " or "1 ", the title of a chapter after "# ". At the end of the
// input it ends, and writes the page into a file where one is named.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/moorage-dev/moorage/internal/kubectl/web"
)

func main() {
	out := flag.String("out", "", "write the page into this file at the end")
	flag.Parse()
	if err := run(flag.Args(), *out); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(servers []string, out string) error {
	page := web.NewPair("A demo", "Moorage", "Upstream")
	ctx, end := context.WithCancel(context.Background())
	defer end()
	ended := make(chan error, 1)
	go func() { ended <- page.Serve(ctx, func(url string) { fmt.Println(url) }) }()
	for i, server := range servers {
		stop, err := page.Follow(i, &rest.Config{Host: server}, "pairpage")
		if err != nil {
			return err
		}
		defer stop()
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		switch kind, text, _ := strings.Cut(lines.Text(), " "); kind {
		case "#":
			page.Chapter(text, "About: "+text)
		case "0":
			page.Tell(0, text)
		case "1":
			page.Tell(1, text)
		}
	}
	err := page.Close()
	end()
	if err := errors.Join(err, <-ended); err != nil || out == "" {
		return err
	}
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	return errors.Join(page.Write(file), file.Close())
}
