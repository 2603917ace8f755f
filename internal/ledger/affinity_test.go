// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"testing"
	"time"
)

func TestChangedLabelsTouchTheNode(t *testing.T) {
	l, now := New(), time.Unix(1000, 0)
	node := func(version, zone string) NodeState {
		return NodeState{Name: "n", UID: "n", Version: version, Ready: ReadyTrue, Managed: true, Reporting: true, Labels: map[string]string{"zone": zone}}
	}
	l.Apply(now, node("1", "a"))
	if touched := l.Apply(now, node("2", "b")); !slices.Contains(touched.Nodes, "n") {
		t.Errorf("another label touches %v", touched)
	}
	if touched := l.Apply(now, node("3", "b")); len(touched.Nodes) > 0 {
		t.Errorf("the same labels touch %v", touched)
	}
	if got := l.Snapshot().Node("n").Labels["zone"]; got != "b" {
		t.Errorf("the node is in zone %q", got)
	}
}

func TestWhereVolumesCanBeUsed(t *testing.T) {
	label := func(op NodeOperator, values ...string) NodeRequirement { return NodeRequirement{"zone", op, values} }
	field := func(op NodeOperator, value string) NodeRequirement {
		return NodeRequirement{"metadata.name", op, []string{value}}
	}
	labels := func(asked ...NodeRequirement) NodeTerm { return NodeTerm{Labels: asked} }
	fields := func(asked ...NodeRequirement) NodeTerm { return NodeTerm{Fields: asked} }
	size := NodeRequirement{"size", NodeIn, []string{"large"}}
	for name, test := range map[string]struct {
		terms   []NodeTerm
		zone    string // of the node of name n; empty: it has no such label
		matches bool
	}{
		"no term":                          {nil, "a", false},
		"a term that asks nothing":         {[]NodeTerm{{}}, "a", false},
		"in its zone":                      {[]NodeTerm{labels(label(NodeIn, "a"))}, "a", true},
		"in one of several":                {[]NodeTerm{labels(label(NodeIn, "b", "a"))}, "a", true},
		"in another one":                   {[]NodeTerm{labels(label(NodeIn, "b"))}, "a", false},
		"in a zone, and it has none":       {[]NodeTerm{labels(label(NodeIn, "a"))}, "", false},
		"in the empty zone, it has none":   {[]NodeTerm{labels(label(NodeIn, ""))}, "", false},
		"not in its zone":                  {[]NodeTerm{labels(label(NodeNotIn, "a"))}, "a", false},
		"not in another one":               {[]NodeTerm{labels(label(NodeNotIn, "b"))}, "a", true},
		"not in a zone, and it has none":   {[]NodeTerm{labels(label(NodeNotIn, "a"))}, "", true},
		"not in the empty zone, has none":  {[]NodeTerm{labels(label(NodeNotIn, ""))}, "", true},
		"in any":                           {[]NodeTerm{labels(label(NodeExists))}, "a", true},
		"in any, and it has none":          {[]NodeTerm{labels(label(NodeExists))}, "", false},
		"in none":                          {[]NodeTerm{labels(label(NodeDoesNotExist))}, "", true},
		"in none, and it has one":          {[]NodeTerm{labels(label(NodeDoesNotExist))}, "a", false},
		"above a number":                   {[]NodeTerm{labels(label(NodeGt, "9"))}, "10", true},
		"just above it":                    {[]NodeTerm{labels(label(NodeGt, "10"))}, "11", true},
		"not above it, below":              {[]NodeTerm{labels(label(NodeGt, "10"))}, "9", false},
		"not above it":                     {[]NodeTerm{labels(label(NodeGt, "10"))}, "10", false},
		"above a number, and it has none":  {[]NodeTerm{labels(label(NodeGt, "-3"))}, "", false},
		"above a number, and it has text":  {[]NodeTerm{labels(label(NodeGt, "-3"))}, "a", false},
		"below a number":                   {[]NodeTerm{labels(label(NodeLt, "10"))}, "9", true},
		"not below it, above":              {[]NodeTerm{labels(label(NodeLt, "9"))}, "10", false},
		"not below it":                     {[]NodeTerm{labels(label(NodeLt, "9"))}, "9", false},
		"below a number, and it has none":  {[]NodeTerm{labels(label(NodeLt, "3"))}, "", false},
		"below a number, and it has text":  {[]NodeTerm{labels(label(NodeLt, "3"))}, "a", false},
		"it is the node":                   {[]NodeTerm{fields(field(NodeIn, "n"))}, "a", true},
		"another node":                     {[]NodeTerm{fields(field(NodeIn, "m"))}, "a", false},
		"not the node":                     {[]NodeTerm{fields(field(NodeNotIn, "n"))}, "a", false},
		"not another node":                 {[]NodeTerm{fields(field(NodeNotIn, "m"))}, "a", true},
		"a field that no node has":         {[]NodeTerm{fields(NodeRequirement{"spec.name", NodeIn, []string{"n"}})}, "a", false},
		"two labels, and it has one":       {[]NodeTerm{labels(label(NodeIn, "a"), size)}, "a", false},
		"two labels, and it has the other": {[]NodeTerm{labels(size, label(NodeIn, "a"))}, "a", false},
		"its zone, and another node":       {[]NodeTerm{{Labels: labels(label(NodeIn, "a")).Labels, Fields: fields(field(NodeIn, "m")).Fields}}, "a", false},
		"its zone, and it is the node":     {[]NodeTerm{{Labels: labels(label(NodeIn, "a")).Labels, Fields: fields(field(NodeIn, "n")).Fields}}, "a", true},
		"another zone, and it is the node": {[]NodeTerm{{Labels: labels(label(NodeIn, "b")).Labels, Fields: fields(field(NodeIn, "n")).Fields}}, "a", false},
		"either zone":                      {[]NodeTerm{labels(label(NodeIn, "b")), labels(label(NodeIn, "a"))}, "a", true},
		"its zone, or what asks nothing":   {[]NodeTerm{{}, labels(label(NodeIn, "a"))}, "a", true},
		"neither zone":                     {[]NodeTerm{labels(label(NodeIn, "b")), labels(label(NodeIn, "c"))}, "a", false},
		"what can't be parsed":             {[]NodeTerm{labels(label(NodeGt, "much"))}, "10", false},
		"that, or its zone":                {[]NodeTerm{labels(label(NodeGt, "much")), labels(label(NodeIn, "10"))}, "10", true},
	} {
		has := map[string]string{}
		if test.zone != "" {
			has["zone"] = test.zone
		}
		if got := NewNodeAffinity(test.terms...).Matches("n", has); got != test.matches {
			t.Errorf("%s: %t", name, got)
		}
	}
	if !(NodeAffinity{}).Matches("n", nil) {
		t.Error("a volume without an affinity can't be used")
	}
}

// Matching runs for every node of a pod.
func TestMatchingAllocatesNothing(t *testing.T) {
	a := NewNodeAffinity(NodeTerm{Labels: []NodeRequirement{{"zone", NodeIn, []string{"a", "b"}}, {"size", NodeGt, []string{"3"}}}})
	labels := map[string]string{"zone": "b", "size": "10"}
	if !a.Matches("n", labels) {
		t.Fatal("no match")
	}
	if got := testing.AllocsPerRun(100, func() { a.Matches("n", labels) }); got > 0 {
		t.Errorf("%v allocations", got)
	}
}
