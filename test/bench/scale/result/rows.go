// SPDX-License-Identifier: Apache-2.0

package result

// kube-controller-manager has the attach/detach controller upstream, and all other controllers in both.
func controllers() []string { return []string{"kube-controller-manager", "moorage-controller"} }

func schedulers() []string { return []string{"kube-scheduler", "moorage-scheduler"} }

func sum(of map[string]float64, names []string) float64 {
	total := 0.0
	for _, name := range names {
		total += of[name]
	}
	return total
}

func rows() []row {
	always := func(of func(Run) float64) func(Run) (float64, bool) {
		return func(r Run) (float64, bool) { return of(r), true }
	}
	rested := func(of func(Run) float64) func(Run) (float64, bool) {
		return func(r Run) (float64, bool) { return of(r), r.Rest.Seconds > 0 }
	}
	started := func(of func(Start) float64) func(Run) (float64, bool) {
		return func(r Run) (float64, bool) { return of(r.Start), r.Start.DecidedSeconds > 0 }
	}
	list := []row{
		{"all pods run after", " s", func(r Run) (float64, bool) { return r.BuildSeconds, r.BuildSeconds > 0 }},
		{"start: first decision", " s", started(func(s Start) float64 { return s.DecidedSeconds })},
		{"start: last write", " s", started(func(s Start) float64 { return s.QuietSeconds })},
		{"start: processor time", " s", started(func(s Start) float64 { return s.CPUSeconds })},
		{"start: most memory", " MiB", started(func(s Start) float64 { return s.PeakMiB })},
		{"at rest, a minute: kube-controller-manager and moorage-controller", " s", rested(func(r Run) float64 { return sum(r.Rest.CPUSeconds, controllers()) * 60 / r.Rest.Seconds })},
		{"– scheduler", " s", rested(func(r Run) float64 { return sum(r.Rest.CPUSeconds, schedulers()) * 60 / r.Rest.Seconds })},
		{"– kube-apiserver", " s", rested(func(r Run) float64 { return r.Rest.CPUSeconds["kube-apiserver"] * 60 / r.Rest.Seconds })},
		{"memory: moorage-controller", " MiB", present("moorage-controller")},
		{"memory: kube-controller-manager", " MiB", present("kube-controller-manager")},
		{"memory: scheduler", " MiB", rested(func(r Run) float64 { return sum(r.Rest.ResidentMiB, schedulers()) })},
		{"bystander in quiet: created → Running, p50", " s", bystander(func(r Run) []float64 { return r.Quiet.Running }, 50)},
		{"– p99", " s", bystander(func(r Run) []float64 { return r.Quiet.Running }, 99)},
	}
	list = append(list, stormRows("zone out of service", func(r Run) *Storm { return r.Storm })...)
	list = append(list, drainRows()...)
	list = append(list, stormRows("the same, controller killed", func(r Run) *Storm { return r.Change })...)
	return append(list,
		row{"rules broken, by the judge", "", always(func(r Run) float64 { return float64(r.Violations) })})
}

func present(name string) func(Run) (float64, bool) {
	return func(r Run) (float64, bool) { return r.Rest.ResidentMiB[name], r.Rest.ResidentMiB[name] > 0 }
}

func bystander(of func(Run) []float64, p int) func(Run) (float64, bool) {
	return func(r Run) (float64, bool) { return percentile(of(r), p), len(of(r)) > 0 }
}

func stormRows(name string, storm func(Run) *Storm) []row {
	of := func(value func(Storm) float64) func(Run) (float64, bool) {
		return func(r Run) (float64, bool) {
			if s := storm(r); s != nil {
				return value(*s), true
			}
			return 0, false
		}
	}
	bystanders := func(times func(Bystanders) []float64) func(Run) []float64 {
		return func(r Run) []float64 {
			if s := storm(r); s != nil {
				return times(s.Bystanders)
			}
			return nil
		}
	}
	running := bystanders(func(b Bystanders) []float64 { return b.Running })
	return []row{
		{name + ": volumes", "", of(func(s Storm) float64 { return float64(s.Volumes) })},
		{"– half of them attached elsewhere", " s", of(func(s Storm) float64 { return percentile(s.Attached, 50) })},
		{"– all attached elsewhere", " s", of(func(s Storm) float64 { return s.AttachedSeconds })},
		{"– all pods run elsewhere", " s", of(func(s Storm) float64 { return s.RunningSeconds })},
		{"– last write of the controller", " s", of(func(s Storm) float64 { return s.QuietSeconds })},
		{"– API writes per volume", "", of(func(s Storm) float64 { return float64(s.Writes.Count()) / float64(max(1, s.Volumes)) })},
		{"– writes of the controller refused", "", of(func(s Storm) float64 { return float64(s.Writes.Refused) })},
		{"– made again for the same object", "", of(func(s Storm) float64 { return float64(s.Writes.again()) })},
		{"– bystander: created → bound, p50", " s", bystander(bystanders(func(b Bystanders) []float64 { return b.Bound }), 50)},
		{"– bystander: created → attached, p50", " s", bystander(bystanders(func(b Bystanders) []float64 { return b.Attached }), 50)},
		{"– bystander: created → Running, p50", " s", bystander(running, 50)},
		{"– bystander: p99", " s", bystander(running, 99)},
		{"– processor time: kube-controller-manager and moorage-controller", " s", of(func(s Storm) float64 { return sum(s.Use.CPUSeconds, controllers()) })},
		{"– scheduler", " s", of(func(s Storm) float64 { return sum(s.Use.CPUSeconds, schedulers()) })},
		{"– kube-apiserver", " s", of(func(s Storm) float64 { return s.Use.CPUSeconds["kube-apiserver"] })},
	}
}

func (w Writes) again() int {
	n := 0
	for _, times := range w.Again {
		n += times
	}
	return n
}

func drainRows() []row {
	of := func(value func(Drain) float64) func(Run) (float64, bool) {
		return func(r Run) (float64, bool) {
			if r.Drain == nil {
				return 0, false
			}
			return value(*r.Drain), true
		}
	}
	return []row{
		{"rolling drain: volumes", "", of(func(d Drain) float64 { return float64(d.Volumes) })},
		{"– all nodes empty, and their pods run elsewhere", " s", of(func(d Drain) float64 { return d.Seconds })},
		{"– evicted → successor Running, p50", " s", of(func(d Drain) float64 { return percentile(d.Away, 50) })},
		{"– p99", " s", of(func(d Drain) float64 { return percentile(d.Away, 99) })},
		{"– API writes per volume", "", of(func(d Drain) float64 { return float64(d.Writes.Count()) / float64(max(1, d.Volumes)) })},
		{"– made again for the same object", "", of(func(d Drain) float64 { return float64(d.Writes.again()) })},
	}
}
