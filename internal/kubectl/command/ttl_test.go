// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestCheckTTL(t *testing.T) {
	for ttl, says := range map[time.Duration]string{
		0: "a second or more", time.Second - 1: "a second or more", -time.Hour: "a second or more",
		time.Second: "", 720 * time.Hour: "",
		720*time.Hour + 1: "720h at most", 10000 * time.Hour: "720h at most",
	} {
		err := CheckTTL(ttl)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", ttl, err)
		}
	}
	crd, err := os.ReadFile("../../../charts/moorage/files/crds/moorage.dev_volumetickets.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(crd), fmt.Sprintf("maximum: %d\n", int64(longestTTL/time.Second))) {
		t.Errorf("the CRD has another maximum than %s", longestTTL)
	}
}
