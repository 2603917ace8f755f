// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"
)

// endless is JSON that never ends: a text, then another one again and again.
type endless struct {
	first, again string
	at           int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.first)
	e.first = e.first[n:]
	for ; n < len(p); n++ {
		p[n] = e.again[e.at%len(e.again)]
		e.at++
	}
	return n, nil
}

// What would take more memory than it may is refused long before it does.
func TestTooMuch(t *testing.T) {
	const allowed = 8 << 20
	for what, c := range map[string]struct {
		in   endless
		most int64 // bytes that may be read of it
	}{
		"objects": {endless{first: "[", again: "{},"}, allowed / 100},
		"strings": {endless{first: "[", again: `"",`}, allowed / 10},
		"lists":   {endless{again: "["}, allowed / 10},
		"a text":  {endless{first: `"`, again: "x"}, allowed + 64<<10},
		"escaped": {endless{first: `"\\`, again: `","`}, allowed / 10}, // the backslash is one of text
	} {
		n, err := io.Copy(io.Discard, (&Budget{allowed, allowed}).Reader(&c.in))
		if err == nil || !strings.Contains(err.Error(), "more than 8 MiB of memory") || n > c.most {
			t.Errorf("%s: %d bytes were read: %v", what, n, err)
		}
	}
}

// Braces and commas in strings are text, however they are cut into parts.
func TestTextIsNotCounted(t *testing.T) {
	text, err := json.Marshal([]string{strings.Repeat(`{,"\[`, 1_000_000)})
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []io.Reader{strings.NewReader(string(text)), iotest.HalfReader(strings.NewReader(string(text)))} {
		b := Of(0)
		raw, err := io.ReadAll(b.Reader(in))
		if err != nil || string(raw) != string(text) {
			t.Errorf("%d bytes were read: %v", len(raw), err)
		}
		if took := b.allowed - b.left; took != int64(len(text))+perValue {
			t.Errorf("it took %d, want the text and its list", took)
		}
	}
}

// All files that are read with a budget share it, and an error of the file comes through.
func TestBudget(t *testing.T) {
	b := Of(0)
	if err := b.Take(forAny); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadAll(b.Reader(strings.NewReader("1"))); err == nil {
		t.Error("more than all was read")
	}
	broken := errors.New("broken")
	if _, err := io.ReadAll(Of(0).Reader(iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Error(err)
	}
	for _, size := range []int64{-1, 0, math.MaxInt64} {
		if allowed := Of(size).allowed; allowed < forAny || allowed > most {
			t.Errorf("a file of %d bytes may take %d", size, allowed)
		}
	}
}
