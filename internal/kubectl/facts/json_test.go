// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// A time that JSON has no text for is shown as the latest or the earliest possible time. The original value
// stays unchanged, as others may be reading it.
func TestFarTimesAreShown(t *testing.T) {
	far, old := time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC)
	seconds := 1.5
	told := []Pod{{
		Name: "db", Created: old,
		Cause:   &Cause{Code: "C", Since: far},
		Volumes: []PodVolume{{}},
	}}
	type all struct {
		Pods    []Pod
		More    map[string]interface{}
		Nothing *Cause
		None    []Pod
		Seconds *float64
		private int
	}
	raw, err := JSON(all{Pods: told, More: map[string]interface{}{"at": far, "nil": nil}, Seconds: &seconds, private: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"since":"9999-12-30T00:00:00Z"`, `"created":"0000-01-02T00:00:00Z"`, `"at":"9999-12-30T00:00:00Z"`, `"nil":null`, `"Nothing":null`, `"None":null`, `"Seconds":1.5`, `"name":"db"`} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("it lacks %s: %s", want, raw)
		}
	}
	if !told[0].Created.Equal(old) || !told[0].Cause.Since.Equal(far) {
		t.Errorf("what was told has changed: %+v", told)
	}
	plain, err := json.Marshal(Pod{Name: "db"})
	if got, err2 := JSON(Pod{Name: "db"}); err != nil || err2 != nil || string(got) != string(plain) {
		t.Errorf("%s, %v, %v", got, err, err2)
	}
	if _, err := JSON(func() {}); err == nil {
		t.Error("a function has JSON")
	}
}
