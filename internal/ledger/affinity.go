// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"iter"
	"strconv"
	"strings"
	"unique"
)

// NodeAffinity is spec.nodeAffinity.required; zero allows every node. Equal values share memory: volumes
// are many, zones few.
type NodeAffinity struct{ terms unique.Handle[string] }

// NodeTerm matches a node that meets all its requirements; without requirements, no node.
type NodeTerm struct {
	Labels []NodeRequirement // of the node's labels
	Fields []NodeRequirement // only metadata.name exists
}

// NodeRequirement is a condition on a label or field.
type NodeRequirement struct {
	Key      string
	Operator NodeOperator
	Values   []string
}

// NodeOperator compares a value, like corev1.NodeSelectorOperator.
type NodeOperator byte

// The operators.
const (
	NodeIn           NodeOperator = 'i'
	NodeNotIn        NodeOperator = 'n'
	NodeExists       NodeOperator = 'e'
	NodeDoesNotExist NodeOperator = 'd'
	NodeGt           NodeOperator = 'g'
	NodeLt           NodeOperator = 'l'
)

// The terms are text: each part ends with its separator, a character that labels, keys and values can't
// contain. A requirement begins with its operator, after onField for a field.
const (
	afterTerm        = "\x01"
	afterRequirement = "\x02"
	afterValue       = "\x03"
	onField          = '\x04'
	nodeNameField    = "metadata.name"
)

// NewNodeAffinity allows a node that matches any term. A term that Kubernetes can't parse matches no node,
// as in component-helpers/scheduling/corev1/nodeaffinity.
func NewNodeAffinity(terms ...NodeTerm) NodeAffinity {
	var b strings.Builder
	for _, t := range terms {
		if !t.valid() {
			continue
		}
		for _, r := range t.Labels {
			r.write(&b)
		}
		for _, r := range t.Fields {
			b.WriteByte(onField)
			r.write(&b)
		}
		b.WriteString(afterTerm)
	}
	return NodeAffinity{unique.Make(b.String())}
}

func (t NodeTerm) valid() bool {
	for _, r := range t.Labels {
		if !r.valid() {
			return false
		}
	}
	for _, r := range t.Fields {
		if r.Operator != NodeIn && r.Operator != NodeNotIn || len(r.Values) != 1 {
			return false
		}
	}
	return len(t.Labels)+len(t.Fields) > 0
}

// valid checks the operator, the number of values, and that they are label values.
func (r NodeRequirement) valid() bool {
	for _, v := range r.Values {
		if !labelValue(v) {
			return false
		}
	}
	switch r.Operator {
	case NodeIn, NodeNotIn:
		return len(r.Values) > 0
	case NodeExists, NodeDoesNotExist:
		return len(r.Values) == 0
	case NodeGt, NodeLt:
		if len(r.Values) != 1 {
			return false
		}
		_, err := strconv.ParseInt(r.Values[0], 10, 64)
		return err == nil
	}
	return false
}

// labelValue allows at most 63 letters, digits, dashes, dots and underscores, with a letter or digit first
// and last.
func labelValue(v string) bool {
	for i := range len(v) {
		c := v[i]
		alphanumeric := c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'
		inside := i > 0 && i < len(v)-1 && (c == '-' || c == '.' || c == '_')
		if !alphanumeric && !inside {
			return false
		}
	}
	return len(v) <= 63
}

func (r NodeRequirement) write(b *strings.Builder) {
	b.WriteByte(byte(r.Operator))
	b.WriteString(r.Key + afterValue)
	for _, v := range r.Values {
		b.WriteString(v + afterValue)
	}
	b.WriteString(afterRequirement)
}

// Matches says whether a node allows the volume. It allocates nothing.
func (a NodeAffinity) Matches(n NodeName, labels map[string]string) bool {
	if a == (NodeAffinity{}) {
		return true
	}
	for term := range parts(a.terms.Value(), afterTerm) {
		if termMatches(term, n, labels) {
			return true
		}
	}
	return false
}

func termMatches(term string, n NodeName, labels map[string]string) bool {
	for r := range parts(term, afterRequirement) {
		fields := r[0] == onField
		if fields {
			r = r[1:]
		}
		key, values, _ := strings.Cut(r[1:], afterValue)
		value, has := labels[key]
		if fields {
			value, has = "", true
			if key == nodeNameField {
				value = string(n)
			}
		}
		if !valueMatches(NodeOperator(r[0]), values, value, has) {
			return false
		}
	}
	return true
}

func valueMatches(op NodeOperator, values, value string, has bool) bool {
	switch op {
	case NodeIn:
		return has && among(values, value)
	case NodeNotIn:
		return !has || !among(values, value)
	case NodeExists:
		return has
	case NodeDoesNotExist:
		return !has
	case NodeGt, NodeLt:
	}
	bound, _, _ := strings.Cut(values, afterValue)
	limit, _ := strconv.ParseInt(bound, 10, 64)
	number, err := strconv.ParseInt(value, 10, 64)
	if !has || err != nil {
		return false
	}
	return op == NodeGt && number > limit || op == NodeLt && number < limit
}

func among(values, value string) bool {
	for v := range parts(values, afterValue) {
		if v == value {
			return true
		}
	}
	return false
}

// parts are the parts of a text that end with a separator.
func parts(text, after string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for text != "" {
			part, rest, _ := strings.Cut(text, after)
			if !yield(part) {
				return
			}
			text = rest
		}
	}
}
