// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// page is what a scenario prints about how it goes. It is safe for parallel use.
type page struct {
	mu   sync.Mutex
	live io.Writer // prints at once; nil keeps everything until turn
	kept bytes.Buffer
}

// Write prints or keeps text.
func (p *page) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live != nil {
		return p.live.Write(text)
	}
	return p.kept.Write(text)
}

// line prints or keeps a line.
func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// turn prints the kept output.
func (p *page) turn(w io.Writer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.kept.WriteTo(w) // a terminal or a file; the next line would fail as well
}
