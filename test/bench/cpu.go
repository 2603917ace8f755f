// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/moorage-dev/moorage/test/sandbox"
)

const (
	// USER_HZ is 100 on every architecture that Go runs on.
	ticksPerSecond = 100
	kubelets       = "kubelets"
	observer       = "bench itself"
	// others is the machine beside the run, with the kernel's own work.
	others = "others on the machine"
)

// cpuReading is in ticks, by process id.
type cpuReading struct {
	byPID   map[int]uint64
	names   map[int]string
	machine uint64
}

func readCPU(c *sandbox.Cluster) (cpuReading, error) {
	r := cpuReading{byPID: map[int]uint64{}, names: map[int]string{os.Getpid(): observer}}
	for _, p := range c.Processes() {
		if p.PID != 0 {
			r.names[p.PID] = componentOf(p.Name)
		}
	}
	for pid := range r.names {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it ended between the two looks
		}
		if err != nil {
			return r, fmt.Errorf("CPU time of %s: %w", r.names[pid], err)
		}
		if r.byPID[pid], err = processTicks(string(stat)); err != nil {
			return r, fmt.Errorf("CPU time of %s: %w", r.names[pid], err)
		}
	}
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return r, fmt.Errorf("CPU time of the machine: %w", err)
	}
	r.machine, err = machineTicks(string(stat))
	return r, err
}

// MeterCPU returns a function for the CPU seconds since the call, by component.
func MeterCPU(c *sandbox.Cluster) (func() (map[string]float64, error), error) {
	before, err := readCPU(c)
	if err != nil {
		return nil, err
	}
	return func() (map[string]float64, error) {
		after, err := readCPU(c)
		if err != nil {
			return nil, err
		}
		return after.since(before), nil
	}, nil
}

// ProcessSeconds counts CPU seconds since the process began.
func ProcessSeconds(pid int) (float64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("CPU time of process %d: %w", pid, err)
	}
	ticks, err := processTicks(string(stat))
	return float64(ticks) / ticksPerSecond, err
}

func componentOf(name string) string {
	if strings.HasPrefix(name, strings.TrimSuffix(sandbox.NodeName(1), "1")) {
		return kubelets
	}
	return name
}

// A process that started in between counts from its start.
func (r cpuReading) since(before cpuReading) map[string]float64 {
	out := map[string]float64{}
	var known uint64
	for pid, ticks := range r.byPID {
		used := ticks - min(ticks, before.byPID[pid])
		known += used
		out[r.names[pid]] += float64(used) / ticksPerSecond
	}
	machine := r.machine - min(r.machine, before.machine)
	out[others] = float64(machine-min(machine, known)) / ticksPerSecond
	return out
}

// Fields 14 and 15 of /proc/PID/stat are utime and stime; the name in parentheses may hold any text.
func processTicks(stat string) (uint64, error) {
	_, rest, ok := cutLast(stat, ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 13 {
		return 0, fmt.Errorf("not a stat file of a process: %q", stat)
	}
	return sumTicks(fields[11:13])
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// The first line of /proc/stat, without idle, iowait and steal; guest time is in user.
func machineTicks(stat string) (uint64, error) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 8 || fields[0] != "cpu" {
		return 0, fmt.Errorf("not a stat file of a machine: %q", line)
	}
	return sumTicks([]string{fields[1], fields[2], fields[3], fields[6], fields[7]})
}

func sumTicks(fields []string) (uint64, error) {
	var sum uint64
	for _, field := range fields {
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("CPU ticks: %w", err)
		}
		sum += n
	}
	return sum, nil
}
