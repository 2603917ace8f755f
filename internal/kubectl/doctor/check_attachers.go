// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"strings"

	storagev1 "k8s.io/api/storage/v1"
)

// checkAttachers finds drivers whose external-attacher is down.
func checkAttachers(e *Evidence) []Finding {
	if e.Leases.Err != nil {
		return unchecked("leases.coordination.k8s.io", e.Leases.Err)
	}
	drivers := slices.Clone(e.World.Drivers)
	slices.SortFunc(drivers, func(a, b *storagev1.CSIDriver) int { return strings.Compare(a.Name, b.Name) })
	var list []Finding
	for _, d := range drivers {
		if c := e.World.AttacherDown(d.Name); c != nil {
			list = append(list, found(Error, "its Lease was renewed last at "+c.Since.UTC().Format("2006-01-02T15:04:05Z"), c.Do+".", "%s", c.Message))
		}
	}
	if len(list) == 0 {
		list = append(list, ok("no driver's external-attacher is seen down"))
	}
	return list
}
