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
	// ticksPerSecond is the kernel's USER_HZ, which is 100 on every
	// architecture that Go runs on.
	ticksPerSecond = 100
	// kubelets is all nodes together.
	kubelets = "kubelets"
	// observer is this process: it makes the load and watches.
	observer = "bench itself"
	// others is everything on the machine that is not part of the run, with the kernel's own work.
	others = "others on the machine"
)

// cpuReading is the CPU time, in ticks, of each process by its id.
type cpuReading struct {
	byPID   map[int]uint64
	names   map[int]string
	machine uint64
}

// readCPU reads the use of the cluster's processes, of this one and of the whole machine so far.
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

// MeterCPU begins to measure the CPU time of a cluster's processes, of this process, and of the
// rest of the machine. The returned function returns the seconds since then, by component.
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

// ProcessSeconds is the CPU time, in seconds, that a process has used since it began.
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

// since returns the CPU seconds since an earlier reading, by component. A process that was started
// in between counts from its start.
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

// processTicks reads utime and stime, fields 14 and 15 of /proc/PID/stat; the second field, the
// name, is in parentheses and may hold any text.
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

// machineTicks reads the first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq,
// steal (guest time is in user). Idle, iowait and steal are left out: they are no work here.
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
