// SPDX-License-Identifier: Apache-2.0

package screen

import "io"

// Finding is a finding of doctor's, as it is shown.
type Finding struct {
	Sign                          string
	Good, Bad                     bool
	Check, Message, Evidence, Fix string
}

// Findings prints findings, and of the good ones only the number unless all
// are asked for.
func Findings(w io.Writer, s Style, list []Finding, all bool) error {
	p := &page{w: w, s: s}
	good := 0
	for _, f := range list {
		if f.Good {
			good++
			if !all {
				continue
			}
		}
		c := yellow
		switch {
		case f.Good:
			c = green
		case f.Bad:
			c = red
		}
		const label = 17
		p.printf("%s %s\n", s.paint(c, f.Sign+" "+pad(f.Check, label-3)), s.Wrap(f.Message, label))
		p.line(2, "evidence", f.Evidence)
		p.line(2, "fix", f.Fix)
	}
	p.printf("%s\n", s.paint(faint, number(good)+" of "+number(len(list))+" are as they should be"))
	return p.err
}

func pad(text string, width int) string {
	for len([]rune(text)) < width {
		text += " "
	}
	return text
}
