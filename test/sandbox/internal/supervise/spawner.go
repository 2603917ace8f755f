// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"os/exec"
	"runtime"
)

// A single operating-system thread starts all processes: the kernel sends the parent-death signal when the
// forking thread ends.
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

func (s *spawner) start(cmd *exec.Cmd) error {
	result := make(chan error, 1)
	s.requests <- spawnRequest{cmd: cmd, result: result}
	return <-result
}

func (s *spawner) stop() { close(s.requests) }
