// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
)

// bar is a row of a plot; never stands for no value.
type bar struct {
	name, value string
	length      float64
	ours, never bool
}

func drawBenchmarks(results string) (string, error) {
	placed, err := placed(filepath.Join(results, "placing-premade.json"))
	if err != nil {
		return "", err
	}
	off, err := poweredOff(filepath.Join(results, "power-off.json"))
	if err != nil {
		return "", err
	}
	const width, rowHeight, head = 600, 30, 60
	c := newCanvas(width, 2*head+(len(placed)+len(off))*rowHeight+16, "Pods placed per second, and seconds until a pod of a dead machine runs elsewhere")
	y := plot(c, 34, "Pods placed per second", "500 nodes, volumes made before; median of five runs; longer is better", placed)
	plot(c, y+26, "Seconds until a dead machine's pod runs elsewhere", "Standalone mode; median; shorter is better", off)
	return c.String(), nil
}

func plot(c *canvas, y int, title, note string, bars []bar) int {
	const left, most, rowHeight = 262, 250, 30
	c.text(16, y, style{17, ink, true, ""}, title)
	c.text(16, y+21, style{14, faint, false, ""}, note)
	y += 34
	longest := 0.0
	for _, b := range bars {
		longest = max(longest, b.length)
	}
	for _, b := range bars {
		colour := others
		if b.ours {
			colour = ours
		}
		c.text(left-10, y+19, style{15, ink, false, "end"}, b.name)
		length := int(math.Round(b.length / longest * most))
		if b.never {
			c.text(left, y+19, style{15, bad, true, ""}, b.value)
		} else {
			fmt.Fprintf(&c.b, `<rect x="%d" y="%d" width="%d" height="20" rx="3" fill="%s"/>`+"\n", left, y+4, length, colour)
			c.text(left+length+8, y+19, style{15, ink, true, ""}, b.value)
		}
		y += rowHeight
	}
	return y
}

func placed(file string) ([]bar, error) {
	var result struct {
		Runs []struct {
			Profile       string
			PodsPerSecond float64
		}
	}
	if err := read(file, &result); err != nil {
		return nil, err
	}
	speeds := map[string][]float64{}
	for _, r := range result.Runs {
		speeds[r.Profile] = append(speeds[r.Profile], r.PodsPerSecond)
	}
	var bars []bar
	for _, b := range []struct{ profile, name string }{{"stock", "kube-scheduler"}, {"moorage", "Moorage"}} {
		list := slices.Sorted(slices.Values(speeds[b.profile]))
		if len(list) == 0 {
			return nil, fmt.Errorf("%s has no run of the profile %s", file, b.profile)
		}
		median := list[(len(list)+1)/2-1]
		bars = append(bars, bar{name: b.name, value: fmt.Sprintf("%.1f", median), length: median, ours: b.profile == "moorage"})
	}
	return bars, nil
}

type counts map[string]int

// seconds is the median of a kind of evidence about a dead machine.
func (c counts) seconds(way string) (float64, error) {
	ms, found := c["ms, "+way+": median"]
	if !found {
		return 0, fmt.Errorf("there is no median of %q", way)
	}
	return float64(ms) / 1000, nil
}

func poweredOff(file string) ([]bar, error) {
	var result struct {
		Runs []struct {
			Mode   string
			Counts counts
		}
	}
	if err := read(file, &result); err != nil {
		return nil, err
	}
	of := map[string]counts{}
	for _, r := range result.Runs {
		of[r.Mode] = r.Counts
	}
	bars := []bar{{name: "Kubernetes, without a person", value: "never", never: true}}
	for _, w := range []struct{ mode, way, name string }{
		{"upstream", "taint out-of-service", "Kubernetes, taint by hand"},
		{"standalone", "taint out-of-service", "Moorage, taint by hand"},
		{"standalone", "taint of a cloud, unpublishFences", "Moorage, the cloud's taint"},
		{"standalone", "networkFence", "Moorage, NetworkFence"},
		{"standalone", "fencedCondition", "Moorage, your condition"},
		{"standalone", "afterUnreachable 1m, unpublishFences", "Moorage, 1 min of silence"},
	} {
		s, err := of[w.mode].seconds(w.way)
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", file, w.mode, err)
		}
		bars = append(bars, bar{name: w.name, value: fmt.Sprintf("%.0f s", s), length: s, ours: w.mode == "standalone"})
	}
	return bars, nil
}

func read(file string, into any) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
