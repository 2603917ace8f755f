// SPDX-License-Identifier: Apache-2.0

package result

import (
	"strings"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/test/bench/internal/record"
)

func TestRender(t *testing.T) {
	r := Result{Head: record.Head{Command: "c", Started: time.Unix(0, 0).UTC()}, Runs: []Run{
		{Volumes: 128, Pods: 100, Mounts: 356, ToldSeconds: 0.5,
			Rest:    Rest{Seconds: 200, CPUSeconds: 0.5, Memory: Memory{8, 30, 38, 39}, Requests: Requests{1, 2, 3}},
			Changes: Changes{Seconds: []float64{3, 1, 2, 5}, CPUSeconds: 0.1, Requests: Requests{Writes: 6}}},
		{},
	}}
	text := strings.Join(strings.Fields(Render(r)), " ")
	for _, want := range []string{
		"Measured by `c` on 1 January 1970", "| | 128 volumes, 100 pods | 0 volumes, 0 pods |",
		"| mounts in the kubelet's folder | 356 | 0 |", "| at rest for | 200 s | 0 s |", "| – processor time | 0.50 s | 0.00 s |",
		"| – **that is** | 2.5 millicores | 0.0 millicores |", "| – **writes to the API server** | 1 | 0 |", "| – reads | 2 | 0 |",
		"(RssAnon) | 8.0 MiB |", "(RssFile) | 30.0 MiB |", "(VmRSS) | 38.0 MiB |", "(VmHWM) | 39.0 MiB |",
		"until a watch shows its word | 0.50 s |", "median | 2.00 s | 0.00 s |", "| – the longest | 5.00 s | 0.00 s |",
		"| – processor time of each | 25 ms | 0 ms |", "| – writes of each | 1.5 | 0 |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, Render(r))
		}
	}
}

const top = "../../../../"

func TestDocumentShowsTheResult(t *testing.T) {
	r, err := Read(top + "test/bench/results/node.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := Page().Shows(top+"docs/internals/node-at-rest.md", Render(r)); err != nil {
		t.Error(err)
	}
	if len(r.Runs) != 2 || r.Runs[0].Volumes != 128 || r.Runs[0].Pods != 100 {
		t.Fatalf("it is of %+v", r.Runs)
	}
	rest := r.Runs[0].Rest
	if rest.Memory.AnonMiB >= 20 || rest.Millicores() >= 5 || rest.Requests.Writes > 0 {
		t.Errorf("docs/internals/node-at-rest.md says that the aims are met: %+v", rest)
	}
}
