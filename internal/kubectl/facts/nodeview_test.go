// SPDX-License-Identifier: Apache-2.0

package facts

import "testing"

func TestNotReadyCounts(t *testing.T) {
	for want, x := range map[string]NodeView{
		"is not ready: 2 pods are Terminating there, and a StatefulSet can't replace 1 of them.":              {Terminating: 2, Blocking: 1},
		"is not ready: 1 pod is Terminating there, and a StatefulSet can't replace 1 of them.":                {Terminating: 1, Blocking: 1},
		"is not ready: 2 pods are Terminating there.":                                                         {Terminating: 2},
		"is not ready: 1 volume can't leave it.":                                                              {Kept: make([]Volume, 1)},
		"is not ready, and its kubelet lives: 2 pods are Terminating there, and its kubelet ends such a pod.": {Terminating: 2, Blocking: 1, KubeletLives: true},
	} {
		if got := answerNode(&x); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
