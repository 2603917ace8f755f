// SPDX-License-Identifier: Apache-2.0

package result

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/test/bench/internal/record"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func outcome(mode sandbox.Mode) sandbox.Result {
	return sandbox.Result{
		Mode: mode, Passed: true, Seconds: 61, Calls: 7, Counts: map[string]int{"pods made": 3},
		Broken:  map[diskapi.Rule]int{diskapi.TwoNodes: 2},
		Excused: []diskapi.Violation{{Rule: diskapi.TwoNodes, Message: "first"}, {Rule: diskapi.TwoNodes, Message: "second"}},
		Hanging: []string{"pod p1 is Pending"}, Left: []string{"a VolumeAttachment", "a disk"},
	}
}

func TestRenderTellsWhatWentWrong(t *testing.T) {
	var r Result
	r.Add(Of(record.Head{Command: "c", Started: time.Unix(0, 0).UTC()}, outcome(sandbox.Upstream)))
	r.Add(Of(record.Head{Command: "c"}, sandbox.Result{Mode: sandbox.Standalone, Error: "late\nlong", Counts: map[string]int{"pods made": 4}}))
	text := Render(r)
	for _, want := range []string{
		"|      standalone | upstream |", "| pods made                   |               4 |        3 |", "| **violations, all rules**   |               – |        2 |", "| **left over** | – | 2 |", "| calls of the disk service | – | 7 |",
		"failed", "compared", "standalone failed: late\n", "the first `two-nodes`: first", "the first of 1: pod p1 is Pending", "the first of 2: a VolumeAttachment",
	} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	// A run that failed at its end still has its findings.
	late := Of(record.Head{}, sandbox.Result{Mode: sandbox.Standalone, Error: "a violation", Calls: 5})
	r.Add(late)
	if got := strings.Join(strings.Fields(Render(r)), " "); !strings.Contains(got, "| **violations, all rules** | 0 | 2 |") || !strings.Contains(got, "| calls of the disk service | 5 | 7 |") {
		t.Errorf("what was read is not told:\n%s", got)
	}
	if strings.Contains(text, "second") {
		t.Errorf("more than the first violation of a rule is shown:\n%s", text)
	}
}

func TestSuitesHaveARowEach(t *testing.T) {
	var r Result
	r.Add(Of(record.Head{}, sandbox.Result{Mode: sandbox.Upstream, Counts: map[string]int{"subPath: passed": 3, "subPath: skipped": 2, "others: failed": 1, "failed: a spec": 1}}))
	r.Add(Of(record.Head{}, sandbox.Result{Mode: sandbox.Standalone, Counts: map[string]int{"subPath: passed": 4}}))
	got := strings.Join(strings.Fields(Render(r)), " ")
	for _, want := range []string{
		"| passed / failed / skipped | standalone | upstream |", "| subPath | 4 / 0 / 0 | 3 / 0 / 2 |", "| others | 0 / 0 / 0 | 0 / 1 / 0 |",
		"| **all** | 4 / 0 / 0 | 3 / 1 / 2 |", "| failed: a spec | 0 | 1 |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "subPath: passed") {
		t.Errorf("an outcome has a row of its own:\n%s", got)
	}
}

func TestAddKeepsTheLastRunOfEachMode(t *testing.T) {
	var r Result
	for i, mode := range []sandbox.Mode{sandbox.Upstream, sandbox.Standalone, sandbox.Upstream} {
		run := Of(record.Head{}, sandbox.Result{Mode: mode})
		run.Calls = i
		r.Add(run)
	}
	if len(r.Runs) != 2 || r.Runs[0].Mode != sandbox.Standalone || r.Runs[1].Calls != 2 {
		t.Errorf("there are %+v", r.Runs)
	}
}

func TestLenientRunsHaveTheirOwnColumn(t *testing.T) {
	lenient := Of(record.Head{}, sandbox.Result{
		Mode: sandbox.Upstream, Broken: map[diskapi.Rule]int{diskapi.TwoNodes: 5}, Happened: map[diskapi.Rule]int{diskapi.TwoNodes: 3},
	})
	lenient.Lenient = true
	var r Result
	r.Add(lenient)
	r.Add(Of(record.Head{}, outcome(sandbox.Upstream)))
	r.Add(Of(record.Head{}, sandbox.Result{Mode: sandbox.Standalone}))
	text := strings.Join(strings.Fields(Render(r)), " ")
	for _, want := range []string{
		"| standalone | upstream | upstream, lenient disks |",
		"| violations of `two-nodes` | 0 | 2 | 5 |",
		"| – answered with success | 0 | – | 3 |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
}

func TestStepsAreTold(t *testing.T) {
	with := Of(record.Head{}, sandbox.Result{Mode: sandbox.Standalone, Steps: []sandbox.Step{{Name: "late", Done: 2}, {Name: "early", Done: 3}}})
	without := with
	without.WithoutNode = true
	without.Steps = []sandbox.Step{{Name: "late", Done: 4, Broken: map[diskapi.Rule]int{diskapi.UnpublishWhileStaged: 6, diskapi.StagedAtTwo: 5}}}
	var r Result
	r.Add(without)
	r.Add(with)
	text := strings.Join(strings.Fields(Render(r)), " ")
	for _, want := range []string{
		"| standalone | standalone, without moorage-node |",
		"| late | 2 | 4, 5 × `staged-at-two`, 6 × `unpublish-while-staged` |",
		"| early | 3 | – |",
		"| **all** | 5 | 4, 5 × `staged-at-two`, 6 × `unpublish-while-staged` |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	if strings.Index(text, "| late |") > strings.Index(text, "| early |") {
		t.Error("the steps are not in the order in which they were named")
	}
}

const top = "../../../../"

func TestDocumentShowsTheResult(t *testing.T) {
	for command, files := range map[string]struct{ results, document string }{
		"bench-chaos":            {"chaos.json", "chaos.md"},
		"bench-kubelet-kills":    {"kubelet-kills.json", "kubelet-staging-hole.md"},
		"bench-drain":            {"drain.json", "drain.md"},
		"bench-power-off":        {"power-off.json", "power-off.md"},
		"bench-data":             {"data.json", "data.md"},
		"bench-data-cuts":        {"data-cuts.json", "data.md"},
		"bench-data-kills":       {"data-kills.json", "data.md"},
		"bench-storage-suites":   {"storage-suites.json", "storage-suites.md"},
		"bench-storage-topology": {"storage-topology.json", "storage-suites.md"},
		"bench-waits":            {"waits.json", "waits.md"},
		"bench-leader-gaps":      {"leader-gaps.json", "leader-gaps.md"},
	} {
		r, err := Read(top + "test/bench/results/" + files.results)
		if err != nil {
			t.Error(err)
		} else if err := Page(command).Shows(top+"docs/internals/"+files.document, Render(r)); err != nil {
			t.Error(err)
		}
	}
}

// The README has the sums of the committed results.
func TestReadmeTellsTheResult(t *testing.T) {
	readme, err := os.ReadFile(top + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	chaos, kills, power := results(t, "chaos.json"), results(t, "kubelet-kills.json"), results(t, "power-off.json")
	ours, stock, beside := chaos[kind{mode: sandbox.Standalone}], chaos[kind{mode: sandbox.Upstream}], chaos[kind{mode: sandbox.Cooperative}]
	ourKills, stockKills := kills[kind{mode: sandbox.Standalone}], kills[kind{mode: sandbox.Upstream}]
	killsWithoutNode := kills[kind{mode: sandbox.Standalone, withoutNode: true}]
	if moved(ourKills) != moved(stockKills) || moved(ourKills) != moved(killsWithoutNode) {
		t.Fatalf("%d volumes were moved by Moorage, %d by Moorage without moorage-node, and %d upstream",
			moved(ourKills), moved(killsWithoutNode), moved(stockKills))
	}
	ourPower, stockPower, besidePower := power[kind{mode: sandbox.Standalone}], power[kind{mode: sandbox.Upstream}], power[kind{mode: sandbox.Cooperative}]
	data := results(t, "data.json")
	ourData, stockData, besideData := data[kind{mode: sandbox.Standalone}], data[kind{mode: sandbox.Upstream}], data[kind{mode: sandbox.Cooperative}]
	cuts, suites := results(t, "data-cuts.json"), results(t, "storage-suites.json")
	ourCuts, stockCuts, besideCuts := cuts[kind{mode: sandbox.Standalone}], cuts[kind{mode: sandbox.Upstream}], cuts[kind{mode: sandbox.Cooperative}]
	for _, want := range []string{
		fmt.Sprintf("| [PostgreSQL on a real disk](docs/internals/data.md): time without a write, median of ten rollouts; drains | %s | %s | %s |",
			pauses(ourData), pauses(stockData), pauses(besideData)),
		fmt.Sprintf("| – records lost, when pods move and machines die | %s | %s | %s |", lost(ourData, ""), lost(stockData, ""), lost(besideData, "")),
		fmt.Sprintf("| – its kubelet killed ten times before it unmounts: records lost; databases lost | %s | %s | %s |",
			forgotten(ourData), forgotten(stockData), forgotten(besideData)),
		fmt.Sprintf("| – its node cut off, and nothing fences it: damaged after six minutes; with `afterPodGone: Never` | %s; %s | %s | %s |",
			damaged(ourCuts, ""), damaged(ourCuts, ", only by evidence"), damaged(stockCuts, ""), damaged(besideCuts, "")),
		fmt.Sprintf("| Kubernetes' own [storage suites](docs/internals/storage-suites.md) on real nodes: passed, failed | %s | %s | %s |",
			specs(suites[kind{mode: sandbox.Standalone}]), specs(suites[kind{mode: sandbox.Upstream}]), specs(suites[kind{mode: sandbox.Cooperative}])),
		fmt.Sprintf("| ten minutes of chaos: %d × `kill -9`, %d faults of the driver ([chaos](docs/internals/chaos.md)) | %d attempts to attach a volume to a second node that the first may still have | %d attempts, refused where the first still had it | %d attempts |",
			done(ours, "kill -9: "), done(ours, "faults: "), ours.Broken[diskapi.TwoNodes], stock.Broken[diskapi.TwoNodes], beside.Broken[diskapi.TwoNodes]),
		fmt.Sprintf("| [kubelets killed](docs/internals/kubelet-staging-hole.md) while they mount: volumes detached while staged | %d of %d with moorage-node, %d without | %d of %d |",
			ourKills.Broken[diskapi.UnpublishWhileStaged], moved(ourKills), killsWithoutNode.Broken[diskapi.UnpublishWhileStaged], stockKills.Broken[diskapi.UnpublishWhileStaged], moved(stockKills)),
		fmt.Sprintf("| [machine off](docs/internals/power-off.md) until its pod runs elsewhere, median (worst), out-of-service taint | %s | %s | %s |",
			took(ourPower, "taint out-of-service"), took(stockPower, "taint out-of-service"), took(besidePower, "taint out-of-service")),
		fmt.Sprintf("| the same, a cloud's taint; a [NetworkFence](docs/operate/dead-nodes.md#fenced-by-the-storage); a [condition of yours](docs/operate/dead-nodes.md#fencing-of-your-own); a minute without a sign | %s; %s; %s; %s | never |",
			took(ourPower, "taint of a cloud, unpublishFences"), took(ourPower, "networkFence"), took(ourPower, "fencedCondition"), took(ourPower, "afterUnreachable 1m, unpublishFences")),
	} {
		if !strings.Contains(string(readme), want) {
			t.Errorf("README.md lacks\n%s", want)
		}
	}
}

func pauses(run Run) string {
	return fmt.Sprintf("%.1f s; %.1f s", float64(run.Counts["ms, rolling update: median"])/1000, float64(run.Counts["ms, drain: median"])/1000)
}

func lost(run Run, prefix string) string {
	return fmt.Sprintf("%d of %d", run.Counts[prefix+"records lost"], run.Counts[prefix+"records acknowledged"])
}

func forgotten(run Run) string {
	const fault = "kubelet and driver killed before they unmount: "
	return fmt.Sprintf("%s; %d", lost(run, fault), run.Counts[fault+"databases that answer no more"])
}

func damaged(run Run, how string) string {
	return fmt.Sprintf("%d of %d", run.Counts["cut off"+how+": file systems or databases damaged"], run.Counts["cut off"+how+": databases"])
}

func specs(run Run) string {
	outcomes := map[string]int{}
	for name, count := range run.Counts {
		if _, outcome, found := strings.Cut(name, ": "); found {
			outcomes[outcome] += count
		}
	}
	return fmt.Sprintf("%d, %d", outcomes["passed"], outcomes["failed"])
}

type kind struct {
	mode                 sandbox.Mode
	lenient, withoutNode bool
}

func results(t *testing.T, name string) map[kind]Run {
	t.Helper()
	r, err := Read(top + "test/bench/results/" + name)
	if err != nil {
		t.Fatal(err)
	}
	runs := map[kind]Run{}
	for _, run := range r.Runs {
		runs[kind{run.Mode, run.Lenient, run.WithoutNode}] = run
	}
	return runs
}

func moved(run Run) int { return run.Counts["volumes that were moved"] }

func took(run Run, what string) string {
	return fmt.Sprintf("%d s (%d s)", (run.Counts["ms, "+what+": median"]+500)/1000, (run.Counts["ms, "+what+": worst"]+500)/1000)
}

func done(run Run, kind string) int {
	sum := 0
	for name, n := range run.Counts {
		if strings.HasPrefix(name, kind) {
			sum += n
		}
	}
	return sum
}
