// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/moorage-dev/moorage/test/alloctest"
)

func absurdVolumes(n int, drivers bool) []VolumeID {
	list := make([]VolumeID, n)
	for i := range list {
		list[i] = VolumeID{"disk", fmt.Sprintf("vol-%08d", i)}
		if drivers {
			list[i] = VolumeID{fmt.Sprintf("disk-%08d", i), "vol"}
		}
	}
	return list
}

func absurdPod(l *Ledger, volumes []VolumeID) {
	p := Pod{UID: "p", Version: "1", Namespace: "default", Name: "p", Node: "n"}
	for i, v := range volumes {
		p.Volumes = append(p.Volumes, PodVolume{Name: strconv.Itoa(i), Inline: v, Access: AccessNode})
	}
	l.Apply(start, p)
	p.Version, p.Volumes = "2", p.Volumes[len(volumes)/2:]
	l.Apply(start, p)
	l.Apply(start, PodGone{UID: "p"})
}

// An object with eight times the entries copies little more than eight times as much.
func TestAbsurdObjectsCostInProportion(t *testing.T) {
	const few, times, most = 1000, 8, 16
	tests := map[string]func(l *Ledger, n int){
		"volumesInUse": func(l *Ledger, n int) {
			l.Apply(start, NodeState{Name: "n", UID: "n", Version: "1", InUse: absurdVolumes(n, false), Reporting: true})
		},
		"volumesInUse that are gone again": func(l *Ledger, n int) {
			l.Apply(start, NodeState{Name: "n", UID: "n", Version: "1", InUse: absurdVolumes(n, false), Reporting: true})
			l.Apply(start, NodeState{Name: "n", UID: "n", Version: "2", Reporting: true})
		},
		"volumesInUse of as many drivers": func(l *Ledger, n int) {
			l.Apply(start, NodeState{Name: "n", UID: "n", Version: "1", InUse: absurdVolumes(n, true), Reporting: true})
		},
		"volumesAttached of as many drivers, and the Node is deleted": func(l *Ledger, n int) {
			l.Apply(start, NodeState{Name: "n", UID: "n", Version: "1", Reported: absurdVolumes(n, true), Reporting: true})
			l.Apply(start, NodeGone{Name: "n"})
		},
		"volumesAttached of a Node that is made again": func(l *Ledger, n int) {
			l.Apply(start, NodeState{Name: "n", UID: "n", BootID: "b", Version: "1", Reported: absurdVolumes(n, false), Reporting: true})
			l.Apply(start, NodeState{Name: "n", UID: "m", BootID: "b", Version: "2", Reporting: true})
			l.Apply(start, NodeState{Name: "n", UID: "m", BootID: "c", Version: "3", Reporting: true})
		},
		"drivers of a CSINode": func(l *Ledger, n int) {
			d := NodeDrivers{Node: "n", Version: "1"}
			for _, v := range absurdVolumes(n, true) {
				d.Drivers = append(d.Drivers, DriverOnNode{Name: v.Driver, Limit: 1})
			}
			l.Apply(start, d)
			l.Apply(start, NodeDrivers{Node: "n", Version: "2"})
		},
		"inline volumes of a pod":                     func(l *Ledger, n int) { absurdPod(l, absurdVolumes(n, false)) },
		"inline volumes of a pod, of as many drivers": func(l *Ledger, n int) { absurdPod(l, absurdVolumes(n, true)) },
	}
	for name, object := range tests {
		t.Run(name, func(t *testing.T) {
			cost := func(n int) float64 { return float64(alloctest.Bytes(func() { object(New(), n) })) }
			small, large := cost(few), cost(times*few)
			if large > most*small {
				t.Errorf("%d entries take %.0f KiB, %d take %.0f times as much; want %d times at most", few, small/1024, times*few, large/small, most)
			} else {
				t.Logf("%.0f KiB, and %.1f times as much", small/1024, large/small)
			}
		})
	}
}
