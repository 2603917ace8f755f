// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk"
)

func printClusters(w io.Writer, running []sandbox.Info) error {
	if len(running) == 0 {
		_, err := fmt.Fprintln(w, "No sandbox is running. Start one with `up`.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, info := range running {
		fmt.Fprintf(t, "%s\t%s\t%d nodes\t%s\n", info.Name, info.Shape.Mode, info.Shape.Nodes, info.Kubeconfig)
		writeProcesses(t, info, "")
	}
	return t.Flush()
}

func printProcesses(w io.Writer, info sandbox.Info, name string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if name == sandbox.Everyone {
		name = ""
	}
	writeProcesses(t, info, name)
	return t.Flush()
}

func writeProcesses(w io.Writer, info sandbox.Info, name string) {
	for _, p := range info.Processes {
		if name != "" && name != p.Name {
			continue
		}
		pid := "no process"
		if p.PID != 0 {
			pid = fmt.Sprintf("pid %d", p.PID)
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\tstarted %d times, last %s ago\n", p.Name, p.State, pid, p.Starts, time.Since(p.Started).Round(time.Second))
	}
	if len(info.Cut) > 0 {
		fmt.Fprintf(w, "  cut off from the API server: %s\n", strings.Join(info.Cut, ", "))
	}
}

const screenWidth = 80

// A screen gets lines cut to fit; a pipe or a file gets the whole.
func printScenarios(w io.Writer, scenarios []sandbox.Scenario) error {
	widest := 0
	for _, s := range scenarios {
		widest = max(widest, len(s.Name))
	}
	for _, s := range scenarios {
		doc := []rune(s.Doc)
		if room := screenWidth - widest - 2; isScreen(w) && len(doc) > room {
			doc = append(doc[:max(0, room-1)], '…')
		}
		if _, err := fmt.Fprintf(w, "%-*s  %s\n", widest, s.Name, string(doc)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w, "`moorage-sandbox list TEXT` tells in full what happens, and in which modes.")
	return err
}

func tellScenarios(w io.Writer, scenarios []sandbox.Scenario) error {
	for _, s := range scenarios {
		modes := make([]string, len(s.Modes))
		for i, m := range s.Modes {
			modes[i] = string(m)
		}
		if _, err := fmt.Fprintf(w, "%s (%s)\n  %s\n", s.Name, strings.Join(modes, ", "), s.Doc); err != nil {
			return err
		}
	}
	return nil
}

func printFaults(w io.Writer, faults []disk.FaultStatus) error {
	if len(faults) == 0 {
		_, err := fmt.Fprintln(w, "No fault is set.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tCALLS\tVOLUME\tNODE\tACTION\tCODE\tSEEN\tHITS")
	for _, f := range faults {
		fmt.Fprintf(t, "%s\t%v\t%s\t%s\t%s\t%s\t%d\t%d\n", f.ID, f.Calls, f.Volume, f.Node, f.Action, f.Code, f.Seen, f.Hits)
	}
	return t.Flush()
}
