// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"os/exec"
	"runtime"
)

// spawner starts processes from one operating-system thread that lives as
// long as the group. The kernel sends the parent-death signal when the thread
// that forked the child ends, not when the process does; a goroutine that
// moves between threads would get children killed at random.
type spawner struct {
	requests chan spawnRequest
}

type spawnRequest struct {
	cmd    *exec.Cmd
	result chan<- error
}

func newSpawner() *spawner {
	s := &spawner{requests: make(chan spawnRequest)}
	go s.run()
	return s
}

func (s *spawner) run() {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	for r := range s.requests {
		r.result <- r.cmd.Start()
	}
}

// start forks and execs on the spawner's thread.
func (s *spawner) start(cmd *exec.Cmd) error {
	result := make(chan error, 1)
	s.requests <- spawnRequest{cmd: cmd, result: result}
	return <-result
}

// stop ends the thread; children that still run are killed by the kernel.
func (s *spawner) stop() { close(s.requests) }
