// SPDX-License-Identifier: Apache-2.0

// Package unpack bounds the memory that a compressed file of JSON can take. Such a file may
// come from anybody, and one of 50 KB can unpack to gigabytes.
package unpack

import (
	"fmt"
	"io"
)

// What a value of JSON takes in memory once it is decoded, beside its own text. A map or a
// struct takes several hundred bytes, which in JSON may be no more than "{},".
const (
	perObject = 400
	perValue  = 64
)

// What a file may take, in bytes: some for any file, more for each byte of it, and no more
// than most. Bundles and recordings of real clusters take a tenth of this, or less.
const (
	forAny  = 256 << 20
	perByte = 1000
	most    = 16 << 30
)

// Budget is the memory that one file may take. It is not safe for parallel use.
type Budget struct{ allowed, left int64 }

// Of is the budget of a file of a size.
func Of(packed int64) *Budget {
	allowed := int64(most)
	if packed < (most-forAny)/perByte {
		allowed = forAny + max(0, packed)*perByte
	}
	return &Budget{allowed, allowed}
}

// Reader reads JSON, and fails as soon as decoding what was read would take more than what
// is left of the budget.
func (b *Budget) Reader(r io.Reader) io.Reader { return &reader{in: r, budget: b} }

// Take takes some of the budget for what is no JSON.
func (b *Budget) Take(bytes int64) error {
	if b.left -= bytes; b.left < 0 {
		return fmt.Errorf("it would take more than %d MiB of memory, which is too much for its size", b.allowed>>20)
	}
	return nil
}

// Map takes what a map takes, beside what is in it.
func (b *Budget) Map(entries int) error { return b.Take(perObject + perValue*int64(entries)) }

type reader struct {
	in              io.Reader
	budget          *Budget
	quoted, escaped bool // whether the text is in a string, and behind a backslash there
}

// Read reads on.
func (r *reader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	cost := int64(n)
	for _, c := range p[:n] {
		switch {
		case r.escaped:
			r.escaped = false
		case r.quoted:
			r.escaped, r.quoted = c == '\\', c != '"'
		case c == '"':
			r.quoted = true
		case c == '{':
			cost += perObject
		case c == '[' || c == ',':
			cost += perValue
		}
	}
	if over := r.budget.Take(cost); over != nil {
		return 0, over
	}
	return n, err
}
