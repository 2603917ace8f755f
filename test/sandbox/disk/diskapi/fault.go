// SPDX-License-Identifier: Apache-2.0

package diskapi

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
)

type Action string

// "Effect" is the change of the cloud's state.
const (
	Fail Action = "fail"
	// FailAfter lets the call take effect and then answers an error.
	FailAfter Action = "fail-after"
	Delay     Action = "delay"
	// Hang holds the call before its effect until the fault is cleared. A caller that gives up first leaves
	// no effect.
	Hang Action = "hang"
	// HangAfter lets the call take effect and holds the answer until the fault is cleared or the caller
	// gives up.
	HangAfter Action = "hang-after"
	// HangDone lets a node's call take effect at the service and at the node, and then holds the answer as
	// HangAfter does. The plugin notes that in the log (Held).
	HangDone Action = "hang-done"
	Ignore   Action = "ignore"
)

// If several faults match a call, only the first has an effect.
type Fault struct {
	ID    string `json:"id,omitempty"`
	Calls []Call `json:"calls"`
	// Volume is a handle, Node a node ID; empty is any.
	Volume  string `json:"volume,omitempty"`
	Node    string `json:"node,omitempty"`
	Action  Action `json:"action"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	DelayMs int64  `json:"delayMs,omitempty"`
	// Times is the maximum of hits; 0: until cleared.
	Times int `json:"times,omitempty"`
	// Skip matching calls pass before the first hit.
	Skip int `json:"skip,omitempty"`
	// Probability is the share of hit calls, in (0, 1]; 0 means 1. The hits follow from Seed alone.
	Probability float64 `json:"probability,omitempty"`
	Seed        uint64  `json:"seed,omitempty"`
}

func (f Fault) Validate() error {
	var errs []error
	if len(f.Calls) == 0 {
		errs = append(errs, fmt.Errorf("calls is empty: name at least one of %v", CSICalls()))
	}
	for _, c := range f.Calls {
		errs = append(errs, c.Validate())
	}
	errs = append(errs, f.validateAction(), f.validateCounts())
	return errors.Join(errs...)
}

func (f Fault) validateAction() error {
	switch f.Action {
	case Fail, FailAfter:
		c, err := ParseCode(f.Code)
		if err != nil {
			return fmt.Errorf("code: %w", err)
		}
		if c == codes.OK {
			return errors.New("code: OK is no failure: use action ignore to answer success without effect")
		}
	case Delay:
		if f.DelayMs <= 0 {
			return errors.New("delayMs must be positive for action delay")
		}
	case HangDone:
		for _, call := range f.Calls {
			if !slices.Contains(MountCalls(), call) {
				return fmt.Errorf("action hang-done is for calls that a node carries out, %v, and not for %s", MountCalls(), call)
			}
		}
	case Hang, HangAfter, Ignore:
	default:
		return fmt.Errorf("action %q is unknown: use fail, fail-after, delay, hang, hang-after, hang-done or ignore", f.Action)
	}
	return nil
}

func (f Fault) validateCounts() error {
	if f.Times < 0 || f.Skip < 0 {
		return errors.New("times and skip must not be negative")
	}
	if f.Probability < 0 || f.Probability > 1 {
		return fmt.Errorf("probability %v is outside 0..1", f.Probability)
	}
	return nil
}

// Matches ignores how often the fault has hit already.
func (f Fault) Matches(call Call, volume, node string) bool {
	return slices.Contains(f.Calls, call) &&
		(f.Volume == "" || f.Volume == volume) &&
		(f.Node == "" || f.Node == node)
}

type FaultStatus struct {
	Fault
	Seen int `json:"seen"`
	Hits int `json:"hits"`
}
