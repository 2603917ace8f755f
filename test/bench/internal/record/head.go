// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"time"

	"github.com/moorage-dev/moorage/test/bench/origin"
)

// Head is the origin of a result.
type Head struct {
	// Command is the command line, without flags that don't change the measurement.
	Command string         `json:"command"`
	Source  origin.Source  `json:"source"`
	Started time.Time      `json:"started"`
	Machine origin.Machine `json:"machine"`
}

// Begin is the head of a result that is measured from now on.
func Begin(command string, source origin.Source) Head {
	return Head{
		Command: command, Source: source,
		Started: time.Now().UTC().Truncate(time.Second), Machine: origin.ThisMachine(),
	}
}

// Measured is the origin of a result in words; the sentence has no end yet.
func (h Head) Measured() string {
	return fmt.Sprintf("Measured by `%s` on %s: %s; %s", h.Command, h.Started.Format("2 January 2006"), h.Source, h.Machine)
}
