// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/json"
	"fmt"
	"path"
	"time"

	"github.com/moorage-dev/moorage/test/sandbox"
)

const (
	DefaultNodes = 10
	// Longer than the stock attacher's 0.6 s per attach: no queue. No divisor of a status interval.
	spacing    = 1100 * time.Millisecond
	spacedPods = 40
)

type Case struct {
	Nodes int
	Pods  int
	// Every is the time between pods; zero means all at once.
	Every time.Duration
	// Attach is the time of an attach, and of a detach.
	Attach time.Duration
	// Status is the kubelets' nodeStatusUpdateFrequency.
	Status time.Duration
	// FirstUse provisions a volume when its pod is placed.
	FirstUse bool
	// NotOptedIn: the webhook does not see the pods, and they get no VolumeStatus.
	NotOptedIn bool
}

func Cases() []Case {
	var out []Case
	for _, status := range []time.Duration{time.Second, 10 * time.Second} {
		for _, attach := range []time.Duration{0, time.Second} {
			for _, load := range []Case{{Pods: spacedPods, Every: spacing}, {Pods: 50}, {Pods: 200}} {
				load.Nodes, load.Attach, load.Status = DefaultNodes, attach, status
				out = append(out, load)
			}
		}
	}
	return out
}

func QuickCases() []Case {
	return []Case{{Nodes: DefaultNodes, Pods: 50, Status: time.Second}}
}

// Name is such as burst-50/attach-0s/status-1s. It has the number of nodes only if not DefaultNodes.
func (c Case) Name() string {
	load := "burst"
	if c.Every > 0 {
		load = "spaced"
	}
	name := fmt.Sprintf("%s-%d/attach-%s/status-%s", load, c.Pods, c.Attach, c.Status)
	if c.FirstUse {
		name += "/first-use"
	}
	if c.NotOptedIn {
		name += "/not-opted-in"
	}
	if c.Nodes != DefaultNodes {
		name += fmt.Sprintf("/nodes-%d", c.Nodes)
	}
	return name
}

func (c Case) Title() string {
	load := fmt.Sprintf("%d pods at once", c.Pods)
	if c.Every > 0 {
		load = fmt.Sprintf("%d pods, one every %s", c.Pods, c.Every)
	}
	title := fmt.Sprintf("%s over %d nodes, attach %s, status interval %s", load, c.Nodes, c.Attach, c.Status)
	if c.FirstUse {
		title += ", volumes provisioned on first use"
	}
	if c.NotOptedIn {
		title += ", in a namespace that has not opted in"
	}
	return title
}

func (c Case) Validate() error {
	switch {
	case c.Pods < 1:
		return fmt.Errorf("case of %d pods: at least one is needed", c.Pods)
	case c.Every < 0:
		return fmt.Errorf("case with a pod every %s: use 0 for all at once", c.Every)
	}
	options := sandbox.Options{Shape: c.shape(sandbox.Upstream)}
	if err := options.Validate(); err != nil {
		return fmt.Errorf("case %s: %w", c.Name(), err)
	}
	return nil
}

// A single node has slots for all pods: limits are never reached.
func (c Case) shape(mode sandbox.Mode) sandbox.Shape {
	return sandbox.Shape{
		Mode: mode, Nodes: c.Nodes, Slots: c.Pods,
		AttachLatency: c.Attach, DetachLatency: c.Attach, KubeletStatusInterval: c.Status,
		SilentKubelets: true,
	}
}

// Select matches names by path.Match; no pattern selects all.
func Select(cases []Case, patterns []string) ([]Case, error) {
	if len(patterns) == 0 {
		return cases, nil
	}
	var out []Case
	for _, c := range cases {
		for _, pattern := range patterns {
			matched, err := path.Match(pattern, c.Name())
			if err != nil {
				return nil, fmt.Errorf("case pattern %q: %w", pattern, err)
			}
			if matched {
				out = append(out, c)
				break
			}
		}
	}
	if len(out) == 0 {
		names := ""
		for _, c := range cases {
			names += "\n  " + c.Name()
		}
		return nil, fmt.Errorf("no case matches %q: there are%s", patterns, names)
	}
	return out, nil
}

type caseJSON struct {
	Name   string `json:"name"`
	Nodes  int    `json:"nodes"`
	Pods   int    `json:"pods"`
	Every  string `json:"every"`
	Attach string `json:"attach"`
	Status string `json:"status"`

	FirstUse   bool `json:"firstUse,omitempty"`
	NotOptedIn bool `json:"notOptedIn,omitempty"`
}

func (c Case) MarshalJSON() ([]byte, error) {
	return json.Marshal(caseJSON{c.Name(), c.Nodes, c.Pods, c.Every.String(), c.Attach.String(), c.Status.String(), c.FirstUse, c.NotOptedIn})
}

func (c *Case) UnmarshalJSON(data []byte) error {
	var j caseJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	c.Nodes, c.Pods, c.FirstUse, c.NotOptedIn = j.Nodes, j.Pods, j.FirstUse, j.NotOptedIn
	for text, d := range map[*string]*time.Duration{&j.Every: &c.Every, &j.Attach: &c.Attach, &j.Status: &c.Status} {
		var err error
		if *d, err = time.ParseDuration(*text); err != nil {
			return fmt.Errorf("case %s: %w", j.Name, err)
		}
	}
	return nil
}
