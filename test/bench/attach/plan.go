// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/test/bench/attach/result"
	"github.com/moorage-dev/moorage/test/sandbox"
)

const (
	stockName = "upstream"
	// This is external-attacher's default. A higher driver limit changes nothing for it.
	stockWorkers = 10
)

type setup struct {
	name    string
	mode    sandbox.Mode
	moorage bool
}

func setups() []setup {
	return []setup{
		{stockName, sandbox.Upstream, false},
		{"upstream-tuned", sandbox.UpstreamTuned, false},
		// Only the claims are bound faster: no controller takes part in the measurement.
		{"moorage", sandbox.UpstreamTuned, true},
	}
}

func setupOf(c result.Case) setup {
	all := setups()
	return all[slices.IndexFunc(all, func(s setup) bool { return s.name == c.Setup })]
}

// The attachers take turns with each load, and share the machine's other load.
func (f *flags) plan() ([]result.Case, error) {
	drivers, err := f.parseDrivers()
	if err != nil {
		return nil, err
	}
	if f.rounds < 1 {
		return nil, fmt.Errorf("--rounds=%d: at least one is needed", f.rounds)
	}
	for _, name := range f.attachers {
		if !slices.ContainsFunc(setups(), func(s setup) bool { return s.name == name }) {
			return nil, fmt.Errorf("--attachers: %q is none of upstream, upstream-tuned and moorage", name)
		}
	}
	var plan []result.Case
	for range f.rounds {
		first := true
		for _, volumes := range f.volumes {
			for _, d := range drivers {
				for _, s := range setups() {
					if f.measures(s.name, d, first) {
						plan = append(plan, result.Case{
							Setup: s.name, Volumes: volumes, Nodes: nodes, LatencySeconds: d.latency.Seconds(), Parallel: d.parallel,
						})
					}
				}
				first = false
			}
		}
	}
	return plan, nil
}

func (f *flags) measures(name string, d driver, first bool) bool {
	switch {
	case len(f.attachers) > 0 && !slices.Contains(f.attachers, name):
		return false
	case name != stockName:
		return true
	case d.parallel >= stockWorkers:
		return false // the same to it as a driver without a limit
	}
	return first || !f.cut
}

func (f *flags) parseDrivers() ([]driver, error) {
	var list []driver
	for _, text := range f.drivers {
		latency, parallel, limited := strings.Cut(text, "/")
		var d driver
		var err error
		if d.latency, err = time.ParseDuration(latency); err != nil || d.latency < 0 {
			return nil, fmt.Errorf("--driver=%s: write the time that a call takes, such as 1s, or 1s/50", text)
		}
		if limited {
			if d.parallel, err = strconv.Atoi(parallel); err != nil || d.parallel < 1 {
				return nil, fmt.Errorf("--driver=%s: after the slash comes how many calls it carries out at a time", text)
			}
		}
		list = append(list, d)
	}
	return list, nil
}

func (f *flags) commandLine() string {
	var volumes []string
	for _, n := range f.volumes {
		volumes = append(volumes, strconv.Itoa(n))
	}
	line := fmt.Sprintf("moorage-sandbox bench-attach --volumes=%s --driver=%s --rounds=%d --deadline=%s --stock-deadline=%s",
		strings.Join(volumes, ","), strings.Join(f.drivers, ","), f.rounds, f.deadline, f.stock)
	if len(f.attachers) > 0 {
		line += " --attachers=" + strings.Join(f.attachers, ",")
	}
	if f.cut {
		line += " --cut"
	}
	if f.own != "" {
		line += " --moorage-attacher=" + f.own
	}
	return line
}
