// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/moorage-dev/moorage/test/bench/attach/result"
)

func planOf(t *testing.T, f flags) []string {
	t.Helper()
	cases, err := f.plan()
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, c := range cases {
		list = append(list, fmt.Sprintf("%s %d %gs/%d", c.Setup, c.Volumes, c.LatencySeconds, c.Parallel))
	}
	return list
}

func TestPlan(t *testing.T) {
	whole := flags{volumes: []int{2, 9}, drivers: []string{"0s", "1s/50"}, rounds: 1}
	if got, want := planOf(t, whole), []string{
		"upstream 2 0s/0", "upstream-tuned 2 0s/0", "moorage 2 0s/0", "upstream-tuned 2 1s/50", "moorage 2 1s/50",
		"upstream 9 0s/0", "upstream-tuned 9 0s/0", "moorage 9 0s/0", "upstream-tuned 9 1s/50", "moorage 9 1s/50",
	}; !slices.Equal(got, want) {
		t.Errorf("the whole matrix is %q, want %q", got, want)
	}
	cut := flags{volumes: []int{2, 9}, drivers: []string{"1s/5"}, rounds: 2, cut: true, attachers: []string{"upstream", "moorage"}}
	round := []string{"upstream 2 1s/5", "moorage 2 1s/5", "moorage 9 1s/5"}
	if got, want := planOf(t, cut), slices.Concat(round, round); !slices.Equal(got, want) {
		t.Errorf("a cut of it is %q, want %q", got, want)
	}
}

func TestPlanIsRefused(t *testing.T) {
	for _, f := range []flags{
		{drivers: []string{"soon"}, rounds: 1}, {drivers: []string{"-1s"}, rounds: 1}, {drivers: []string{"1s/0"}, rounds: 1},
		{drivers: []string{"1s/x"}, rounds: 1}, {rounds: 0}, {rounds: 1, attachers: []string{"another"}},
	} {
		if _, err := f.plan(); err == nil {
			t.Errorf("%+v is no error", f)
		}
	}
	f := flags{add: true}
	if _, err := f.before(); err == nil {
		t.Error("--add without --out is no error")
	}
}

func TestLimit(t *testing.T) {
	for want, c := range map[float64]result.Case{
		0: {Volumes: 1000}, 1: {Volumes: 1000, LatencySeconds: 1},
		20: {Volumes: 1000, LatencySeconds: 1, Parallel: 50}, 10.5: {Volumes: 201, LatencySeconds: 0.5, Parallel: 10},
	} {
		if got := c.LimitSeconds(); got != want {
			t.Errorf("%+v: the driver's limit is %v s, want %v s", c, got, want)
		}
	}
}

func TestOwnAttacher(t *testing.T) {
	if path, err := (&flags{}).ownAttacher(); err != nil || path != "" {
		t.Errorf("without one it is %q, %v", path, err)
	}
	if path, err := (&flags{own: "plan_test.go"}).ownAttacher(); err != nil || !filepath.IsAbs(path) {
		t.Errorf("one of this folder is %q, %v: processes start in another", path, err)
	}
	if _, err := (&flags{own: "nowhere"}).ownAttacher(); err == nil {
		t.Error("one that is not there is no error")
	}
}
