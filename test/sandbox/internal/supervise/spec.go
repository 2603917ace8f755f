// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"errors"
	"time"
)

// Spec describes one child process. It is kept for as long as the Group
// lives: starting a killed child again uses the same Spec.
type Spec struct {
	// Name identifies the child within its Group, and names it in errors.
	Name string
	// Path is the executable.
	Path string
	// Args are the arguments after the program name.
	Args []string
	// Env is appended to the environment of the parent.
	Env []string
	// Dir is the working directory.
	Dir string
	// LogPath receives stdout and stderr. It is appended to, so that the log
	// of a child that was killed survives its next start.
	LogPath string
	// Cloneflags make namespaces of its own for the child, see clone(2).
	Cloneflags uintptr
	// Restart starts the child again when it exits by itself, as a kubelet
	// does with a container. A child that exits more than MaxQuickExits times
	// in a row, each within QuickExit of its start, has failed.
	Restart bool
}

const (
	// QuickExit is the running time below which an exit counts as quick.
	QuickExit = 5 * time.Second
	// MaxQuickExits is how many quick exits in a row a child with Restart set
	// may have before it counts as failed.
	MaxQuickExits = 5
	// restartDelay is the pause before an exited child is started again.
	restartDelay = 500 * time.Millisecond
)

// Validate reports what is missing in the Spec.
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

// State is what a child process is doing.
type State string

const (
	// Running means the process exists and is not stopped by us.
	Running State = "running"
	// Paused means the process exists and got SIGSTOP from us.
	Paused State = "paused"
	// Killed means we killed it; Start brings it back.
	Killed State = "killed"
	// Exited means it ended by itself.
	Exited State = "exited"
)

// Status is a child process as seen at one moment.
type Status struct {
	Name    string    `json:"name"`
	PID     int       `json:"pid,omitempty"`
	State   State     `json:"state"`
	Started time.Time `json:"started"`
	// Starts counts how often it was started.
	Starts int    `json:"starts"`
	Log    string `json:"log"`
}

// ExitError says that a child ended without being asked to.
type ExitError struct {
	// Name of the child.
	Name string
	// Reason is the exit status in words, such as "exit status 1".
	Reason string
	// Log is the path of its log file.
	Log string
}

// Error names the child, how it ended and where its log is.
func (e *ExitError) Error() string {
	return e.Name + " ended by itself (" + e.Reason + "); its log is " + e.Log
}
