// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/moorage-dev/moorage/internal/serving"
)

// Node is a node that a scheduler asks about.
type Node struct {
	Name string
	// Object is the Node as sent; nil if only the name was sent.
	Object json.RawMessage
}

// Args are the arguments of filter and prioritize (extenderv1.ExtenderArgs).
type Args struct {
	Pod   *corev1.Pod // with an identity
	Nodes []Node
	// Named: the scheduler takes names for nodes (nodeCacheCapable).
	Named bool
}

// ReadArgs reads the arguments of filter and prioritize, with only nodes' names. Its error is a
// *serving.RequestError.
func ReadArgs(body io.Reader) (Args, error) {
	var c Args
	given := false
	s := stream{json.NewDecoder(body)}
	err := s.object(func(key string) (err error) {
		switch {
		case strings.EqualFold(key, "Pod"):
			c.Pod, err = s.onlyPod(c.Pod)
		case strings.EqualFold(key, "Nodes"):
			objects, present, err := s.nodeList()
			if present {
				c.Nodes, c.Named, given = objects, false, true
			}
			return err
		case strings.EqualFold(key, "NodeNames"):
			names, present, err := s.nodeNames()
			if present {
				c.Nodes, c.Named, given = names, true, true
			}
			return err
		default:
			err = s.skip()
		}
		return err
	})
	if err == nil {
		err = s.end()
	}
	switch {
	case err != nil:
		return Args{}, malformed("ExtenderArgs", err)
	case !given:
		return Args{}, serving.BadRequest("the ExtenderArgs have neither Nodes nor NodeNames")
	}
	return c, known(c.Pod)
}

// present is false for null.
func (s stream) nodeList() (list []Node, present bool, err error) {
	err = s.object(func(key string) error {
		present = true
		if key != "items" {
			return s.skip()
		}
		list = nil
		return s.array(func() error {
			if len(list) == MaxNodes {
				return serving.TooLarge("there are more than %d nodes", MaxNodes)
			}
			raw, err := s.raw()
			if err != nil {
				return err
			}
			name := path(raw, "metadata", "name")
			if name == "" {
				return serving.BadRequest("node %d has no name", len(list))
			}
			list = append(list, Node{name, raw})
			return nil
		})
	})
	return list, present, err
}

// present is false for null.
func (s stream) nodeNames() (list []Node, present bool, err error) {
	token, err := s.Token()
	if err != nil || token == nil {
		return nil, false, err
	}
	if token != json.Delim('[') {
		return nil, false, serving.BadRequest("NodeNames is not a list")
	}
	for s.More() {
		if len(list) == MaxNodes {
			return nil, false, serving.TooLarge("there are more than %d node names", MaxNodes)
		}
		name, err := s.text()
		if err != nil {
			return nil, false, err
		}
		list = append(list, Node{Name: name})
	}
	_, err = s.Token()
	return list, true, err
}

// Preemption are the arguments of preempt (extenderv1.ExtenderPreemptionArgs).
type Preemption struct {
	Pod *corev1.Pod // with a name, a namespace and a UID
	// Victims are the scheduler's choice, by node.
	Victims map[string]*extenderv1.MetaVictims

	count int // of all victims
}

// ReadPreemption reads the arguments of preempt, with only victims' UIDs. Its error is a
// *serving.RequestError.
func ReadPreemption(body io.Reader) (Preemption, error) {
	p := Preemption{Victims: map[string]*extenderv1.MetaVictims{}}
	s := stream{json.NewDecoder(body)}
	err := s.object(func(key string) (err error) {
		switch {
		case strings.EqualFold(key, "Pod"):
			p.Pod, err = s.onlyPod(p.Pod)
		case strings.EqualFold(key, "NodeNameToVictims"):
			err = p.read(s, "metadata", "uid")
		case strings.EqualFold(key, "NodeNameToMetaVictims"):
			err = p.read(s, "UID")
		default:
			err = s.skip()
		}
		return err
	})
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return Preemption{}, malformed("ExtenderPreemptionArgs", err)
	}
	return p, known(p.Pod)
}

func (p *Preemption) read(s stream, uid ...string) error {
	return s.object(func(node string) error {
		if len(p.Victims) == MaxNodes {
			return serving.TooLarge("there are more than %d nodes with victims", MaxNodes)
		}
		victims := &extenderv1.MetaVictims{Pods: []*extenderv1.MetaPod{}}
		p.Victims[node] = victims
		return s.object(func(key string) error {
			switch {
			case strings.EqualFold(key, "NumPDBViolations"):
				return s.Decode(&victims.NumPDBViolations)
			case !strings.EqualFold(key, "Pods"):
				return s.skip()
			}
			return s.array(func() error {
				if p.count++; p.count > MaxVictims {
					return serving.TooLarge("there are more than %d victims", MaxVictims)
				}
				raw, err := s.raw()
				if err != nil {
					return err
				}
				id := path(raw, uid...)
				if id == "" {
					return serving.BadRequest("a victim at node %q has no UID", node)
				}
				victims.Pods = append(victims.Pods, &extenderv1.MetaPod{UID: id})
				return nil
			})
		})
	})
}

// MaxBindingBytes bounds the arguments of bind: four names.
const MaxBindingBytes = 16 << 10

// ReadBinding reads the arguments of bind. Its error is a *serving.RequestError.
func ReadBinding(w http.ResponseWriter, r *http.Request) (extenderv1.ExtenderBindingArgs, error) {
	var args extenderv1.ExtenderBindingArgs
	body, err := serving.ReadJSON(w, r, MaxBindingBytes)
	if err != nil {
		return args, err
	}
	if err := json.Unmarshal(body, &args); err != nil {
		return args, malformed("ExtenderBindingArgs", err)
	}
	if args.PodName == "" || args.PodNamespace == "" || args.PodUID == "" || args.Node == "" {
		return args, serving.BadRequest("the ExtenderBindingArgs must have PodName, PodNamespace, PodUID and Node")
	}
	return args, nil
}

func known(pod *corev1.Pod) error {
	if pod == nil || pod.Name == "" || pod.Namespace == "" || pod.UID == "" {
		return serving.BadRequest("the arguments have no Pod with a name, a namespace and a UID")
	}
	return nil
}

// malformed keeps an error that already says so.
func malformed(what string, err error) error {
	if already := (*serving.RequestError)(nil); errors.As(err, &already) {
		return err
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &serving.RequestError{Code: http.StatusRequestTimeout, Reason: metav1.StatusReasonTimeout,
			Message: "the body took too long to arrive"}
	}
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return serving.TooLarge("the body is larger than %d bytes: have the scheduler send names only (nodeCacheCapable: true), or raise --extender-max-request-bytes", tooLarge.Limit)
	}
	return serving.BadRequest("the body is not %s: %v", what, err)
}
