// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/internal/serving"
)

// Bounds are a few times the request for Kubernetes' largest cluster (5,000 nodes, 110 pods each). They
// bound memory, since a short text can take a hundred times its length. serving.MaxValues bounds a pod.
const (
	MaxNodes    = 20_000
	MaxVictims  = 100_000
	MaxPodBytes = 3 << 20 // the API server's limit
)

// stream keeps a large request in memory as a whole at most once.
type stream struct{ *json.Decoder }

// object calls field with each key; field reads the value. null counts as empty.
func (s stream) object(field func(key string) error) error {
	return s.walk('{', func() error {
		key, err := s.Token()
		if err != nil {
			return err
		}
		name, ok := key.(string)
		if !ok {
			return fmt.Errorf("%v is not a key", key)
		}
		return field(name)
	})
}

// array calls element at each element; element reads it. null counts as empty.
func (s stream) array(element func() error) error { return s.walk('[', element) }

func (s stream) walk(opening json.Delim, next func() error) error {
	token, err := s.Token()
	if err != nil || token == nil {
		return err
	}
	if token != opening {
		return fmt.Errorf("%v where %v is wanted", token, opening)
	}
	for s.More() {
		if err := next(); err != nil {
			return err
		}
	}
	_, err = s.Token()
	return err
}

func (s stream) text() (string, error) {
	token, err := s.Token()
	if err != nil {
		return "", err
	}
	text, ok := token.(string)
	if !ok {
		return "", fmt.Errorf("%v where a string is wanted", token)
	}
	return text, nil
}

func (s stream) raw() (json.RawMessage, error) {
	var raw json.RawMessage
	err := s.Decode(&raw)
	return raw, err
}

func (s stream) skip() error {
	_, err := s.raw()
	return err
}

func (s stream) end() error {
	if _, err := s.Token(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = errors.New("something follows the JSON object")
		}
		return err
	}
	return nil
}

// onlyPod refuses a second pod: many pods would cost many times their length.
func (s stream) onlyPod(already *corev1.Pod) (*corev1.Pod, error) {
	if already != nil {
		return nil, serving.BadRequest("there is more than one Pod")
	}
	return s.pod()
}

// pod returns nil for null.
func (s stream) pod() (*corev1.Pod, error) {
	raw, err := s.raw()
	if err != nil {
		return nil, err
	}
	if len(raw) > MaxPodBytes {
		return nil, serving.TooLarge("the pod has %d bytes, more than the %d that the API server takes", len(raw), MaxPodBytes)
	}
	if err := serving.CheckValues(raw, "the pod"); err != nil {
		return nil, err
	}
	var pod *corev1.Pod
	if err := json.Unmarshal(raw, &pod); err != nil {
		return nil, fmt.Errorf("Pod: %w", err)
	}
	return pod, nil
}

// path reads the string at a path of keys; empty if absent. It ignores the rest.
func path(raw []byte, keys ...string) string {
	s := stream{json.NewDecoder(bytes.NewReader(raw))}
	found := ""
	stop := errors.New("found")
	var descend func(keys []string) error
	descend = func(keys []string) error {
		return s.object(func(key string) error {
			switch {
			case key != keys[0]:
				return s.skip()
			case len(keys) > 1:
				return descend(keys[1:])
			}
			text, err := s.text()
			if err != nil {
				return err
			}
			found = text
			return stop
		})
	}
	_ = descend(keys) // only the found value matters
	return found
}
