// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"errors"
	"time"
)

type Spec struct {
	Name string
	Path string
	Args []string
	// Env is appended to the environment of the parent.
	Env        []string
	Dir        string
	LogPath    string
	Cloneflags uintptr
	// Restart starts the child again when it exits. The child has failed after more than MaxQuickExits
	// exits in a row, each within QuickExit.
	Restart bool
}

const (
	QuickExit     = 5 * time.Second
	MaxQuickExits = 5
	restartDelay  = 500 * time.Millisecond
)

func (s Spec) Validate() error {
	switch {
	case s.Name == "":
		return errors.New("supervise: a child process needs a name")
	case s.Path == "":
		return errors.New("supervise: " + s.Name + ": no executable given")
	case s.LogPath == "":
		return errors.New("supervise: " + s.Name + ": no log file given")
	}
	return nil
}

type State string

const (
	Running State = "running"
	Paused  State = "paused"
	Killed  State = "killed"
	Exited  State = "exited"
)

type Status struct {
	Name    string    `json:"name"`
	PID     int       `json:"pid,omitempty"`
	State   State     `json:"state"`
	Started time.Time `json:"started"`
	Starts  int       `json:"starts"`
	Log     string    `json:"log"`
}

type ExitError struct {
	Name   string
	Reason string
	Log    string
}

func (e *ExitError) Error() string {
	return e.Name + " ended by itself (" + e.Reason + "); its log is " + e.Log
}
