// SPDX-License-Identifier: Apache-2.0

package diskapi

import (
	"errors"
	"fmt"
	"slices"
)

// CSI 1.13 has these calls, as alpha, in place of the removed VolumeCondition.
const (
	ControllerGetVolumeHealth  Call = "ControllerGetVolumeHealth"
	ControllerListVolumeHealth Call = "ControllerListVolumeHealth"
)

const SetHealth Call = "SetHealth"

type HealthStatus string

const (
	Degraded     HealthStatus = "DEGRADED"
	Inaccessible HealthStatus = "INACCESSIBLE"
	DataLoss     HealthStatus = "DATA_LOSS"
)

func HealthStatuses() []HealthStatus { return []HealthStatus{Degraded, Inaccessible, DataLoss} }

// Health is only reported by the driver: the disk works as before, and failing calls need a Fault.
type Health struct {
	Status HealthStatus `json:"status"`
	// Reason is in CamelCase; a volume has each status and reason once.
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

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
