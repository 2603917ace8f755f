// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type cpu struct {
	own  time.Duration // by this process
	etcd time.Duration // by the etcd that it has started
	// All cores together since the start, in the kernel's unit; 0 where the system lacks them.
	busy, all float64
}

func cpuNow() cpu {
	c := cpu{own: ownTime(), etcd: etcdTime(os.Getpid())}
	if text, err := os.ReadFile("/proc/stat"); err == nil {
		c.busy, c.all = machineTime(string(text))
	}
	return c
}

func ownTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// USER_HZ is the same on all Linux systems that Go runs on.
const ticksPerSecond = 100

// 0 without /proc
func etcdTime(parent int) time.Duration {
	children, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	if err != nil {
		return 0
	}
	total := time.Duration(0)
	for _, file := range children {
		pids, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for _, pid := range bytes.Fields(pids) {
			if stat, err := os.ReadFile("/proc/" + string(pid) + "/stat"); err == nil {
				total += processTime(string(stat), "etcd")
			}
		}
	}
	return total
}

// /proc/PID/stat (proc(5)), user and system.
func processTime(stat, name string) time.Duration {
	before, after, ok := strings.Cut(stat, "("+name+") ")
	fields := strings.Fields(after)
	const utime, stime = 11, 12 // after the name
	if !ok || strings.Contains(before, "(") || len(fields) <= stime {
		return 0
	}
	ticks := 0
	for _, i := range []int{utime, stime} {
		n, err := strconv.Atoi(fields[i])
		if err != nil {
			return 0
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond
}

// The first line of /proc/stat (proc(5)). Idle and iowait are fourth and fifth; the first two include
// guests.
func machineTime(stat string) (busy, all float64) {
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, 0
	}
	for i, field := range fields[1:9] {
		n, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return 0, 0
		}
		all += n
		if i != 3 && i != 4 {
			busy += n
		}
	}
	return busy, all
}
