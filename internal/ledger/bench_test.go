// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// 5,000 nodes, 100,000 attached volumes with handles of 24 bytes.
const (
	benchNodes   = 5_000
	benchVolumes = 100_000
)

func benchHandle(i int) string { return fmt.Sprintf("vol-%020d", i) }

func benchNode(i int) NodeName { return NodeName("worker-" + strconv.Itoa(i%benchNodes)) }

func benchAttachment(i, version int) Attachment {
	v := VolumeID{"disk.csi.example.com", benchHandle(i)}
	return Attachment{
		Name: AttachmentName(v, benchNode(i)), UID: benchUID(i), Version: strconv.Itoa(version),
		Driver: v.Driver, Node: benchNode(i), PersistentVolume: "pvc-" + benchUID(i), Attached: true, Ours: true, Transitions: 1,
		NodeID: "i-" + string(benchNode(i)),
	}
}

func benchUID(i int) string { return fmt.Sprintf("6f1c1d2e-3a4b-4c5d-8e9f-%012x", i) }

func benchPV(i int) PersistentVolume {
	return PersistentVolume{
		Name: "pvc-" + benchUID(i), UID: benchUID(i), Version: strconv.Itoa(i + 1), Access: AccessNode, Class: "fast",
		Volume: VolumeID{"disk.csi.example.com", benchHandle(i)}, Claim: ClaimKey{"default", "data-" + strconv.Itoa(i)},
	}
}

func benchWorld(nodes, volumes int, inline bool) *Ledger {
	l := New()
	for i := range nodes {
		n := benchNode(i)
		l.Apply(start, NodeState{Name: n, UID: benchUID(i), Version: strconv.Itoa(i + 1), Ready: ReadyTrue, Managed: true, Reporting: true})
		l.Apply(start, NodeDrivers{Node: n, Version: strconv.Itoa(i + 1), Drivers: []DriverOnNode{{"disk.csi.example.com", "i-" + string(n), 128}}})
	}
	for i := range volumes {
		a := benchAttachment(i, i+1)
		if inline {
			a.Inline, a.PersistentVolume = VolumeID{a.Driver, benchHandle(i)}, ""
		} else {
			l.Apply(start, benchPV(i))
		}
		l.Apply(start, a)
	}
	return l
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func bytesPerVolume(inline bool) float64 {
	empty := liveHeap()
	nodes := benchWorld(benchNodes, 0, inline)
	withNodes := liveHeap()
	runtime.KeepAlive(nodes)
	all := benchWorld(benchNodes, benchVolumes, inline)
	full := liveHeap()
	runtime.KeepAlive(all)
	return (float64(full-empty) - float64(withNodes-empty)) / benchVolumes
}

// A volume with an attachment costs less than 480 bytes.
func TestFootprint(t *testing.T) {
	if got := bytesPerVolume(true); got >= 480 {
		t.Errorf("%.0f bytes per volume with one attachment, want less than 480", got)
	}
}

func BenchmarkFootprint(b *testing.B) {
	for name, inline := range map[string]bool{"attachment": true, "attachment+persistentVolume": false} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(bytesPerVolume(inline), "B/volume")
			}
		})
	}
}

// Wall time says nothing on a busy machine; the garbage collector counts.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Attachments' status changes are the commonest deciding event. cpu-ns/op is processor time, events/cpu-s
// the events per second of a core.
func BenchmarkApply(b *testing.B) {
	for _, every := range []int{0, 100, 1} {
		b.Run(fmt.Sprintf("snapshotEvery=%d", every), func(b *testing.B) {
			l := benchWorld(benchNodes, benchVolumes, false)
			events := make([]Attachment, benchVolumes)
			for i := range events {
				events[i] = benchAttachment(i, 0)
			}
			version := 2 * benchVolumes
			runtime.GC()
			b.ReportAllocs()
			from := cpu(b)
			for i := 0; b.Loop(); i++ {
				a := &events[i%benchVolumes]
				version++
				a.Version, a.Attached = strconv.Itoa(version), !a.Attached
				l.Apply(start, a)
				if every > 0 && i%every == 0 {
					l.Snapshot()
				}
			}
			spent := cpu(b) - from
			b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(b.N)/spent.Seconds(), "events/cpu-s")
		})
	}
}
