// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"time"

	"github.com/moorage-dev/moorage/test/bench/origin"
)

type Head struct {
	// Command has no flags that don't change the measurement.
	Command string         `json:"command"`
	Source  origin.Source  `json:"source"`
	Started time.Time      `json:"started"`
	Machine origin.Machine `json:"machine"`
}

func Begin(command string, source origin.Source) Head {
	return Head{
		Command: command, Source: source,
		Started: time.Now().UTC().Truncate(time.Second), Machine: origin.ThisMachine(),
	}
}

func (h Head) Measured() string {
	return fmt.Sprintf("Measured by `%s` on %s: %s; %s", h.Command, h.Started.Format("2 January 2006"), h.Source, h.Machine)
}
