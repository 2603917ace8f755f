// SPDX-License-Identifier: Apache-2.0

package diskapi

import (
	"errors"
	"fmt"
	"slices"
)

// The CSI calls by which a driver reports volumes' faults. CSI 1.13 has them, as alpha, in place of the
// removed VolumeCondition.
const (
	ControllerGetVolumeHealth  Call = "ControllerGetVolumeHealth"
	ControllerListVolumeHealth Call = "ControllerListVolumeHealth"
)

// SetHealth sets a volume's faults from now on; always in phase Noted.
const SetHealth Call = "SetHealth"

// HealthStatus is how a volume is not well, by CSI's name.
type HealthStatus string

// The statuses.
const (
	Degraded     HealthStatus = "DEGRADED"
	Inaccessible HealthStatus = "INACCESSIBLE"
	DataLoss     HealthStatus = "DATA_LOSS"
)

// HealthStatuses lists them all.
func HealthStatuses() []HealthStatus { return []HealthStatus{Degraded, Inaccessible, DataLoss} }

// Health is a fault of a volume. The driver only reports it: the disk works as before, and calls that
// must fail need a Fault.
type Health struct {
	Status HealthStatus `json:"status"`
	// Reason is a word in CamelCase; a volume has each status and reason once.
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// ValidateHealth returns an error with the wrong entry and its permitted values.
func ValidateHealth(list []Health) error {
	for i, h := range list {
		if !slices.Contains(HealthStatuses(), h.Status) {
			return fmt.Errorf("status %q is unknown: use one of %v", h.Status, HealthStatuses())
		}
		if h.Reason == "" {
			return errors.New("reason is empty: use a word such as ReplicaLost")
		}
		same := func(o Health) bool { return o.Status == h.Status && o.Reason == h.Reason }
		if slices.ContainsFunc(list[:i], same) {
			return fmt.Errorf("%s with reason %s is there twice: name each once", h.Status, h.Reason)
		}
	}
	return nil
}
