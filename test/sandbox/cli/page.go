// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// page is a scenario's output about its progress. It is safe for parallel use.
type page struct {
	mu   sync.Mutex
	live io.Writer // prints at once; nil keeps everything until turn
	kept bytes.Buffer
}

func (p *page) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live != nil {
		return p.live.Write(text)
	}
	return p.kept.Write(text)
}

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

func (p *page) turn(w io.Writer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.kept.WriteTo(w) // a terminal or a file; the next line would fail as well
}
