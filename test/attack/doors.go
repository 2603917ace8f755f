// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/moorage-dev/moorage/test/sandbox"
)

const (
	byTLS          = "TLS"
	byCertificate  = "mutual TLS"
	byReview       = "the API server's word on who asks"
	byHandler      = "the handler"
	doorPatience   = 10 * time.Second
	largestOfDoors = 64 << 10 // bytes that are read of an answer
	nowhere        = "nowhere"
)

func outsider() actor {
	return actor{name: "anybody who can connect", user: "system:anonymous", groups: []string{"system:unauthenticated"}}
}

func holder(of string) actor {
	a := outsider()
	a.name = "stolen certificate of " + of
	return a
}

// The port lets in kube-schedulers only.
func doors() []attempt {
	const name = "the extender"
	ask := func(scheme string, change func(s *Scene, c *caller)) try {
		return func(ctx context.Context, s *Scene, _ clients) error {
			return s.everywhere(s.Extenders, func(address string) error {
				c := caller{url: scheme + "://" + address + "/bind", body: `{}`}
				change(s, &c)
				return c.send(ctx)
			})
		}
	}
	return append([]attempt{
		{outsider(), name + ", without TLS", byTLS, ask("http", func(*Scene, *caller) {})},
		{outsider(), name + ", without a certificate", byCertificate, ask("https", func(*Scene, *caller) {})},
		{outsider(), name + ", with a service account's token instead", byCertificate, ask("https", func(s *Scene, c *caller) { c.token = s.keys.tenant })},
		{outsider(), name + ", with a certificate of an authority of one's own", byCertificate, ask("https", func(s *Scene, c *caller) { c.shows(s.keys.forged) })},
		{outsider(), name + ", with the webhook's certificate", byCertificate, ask("https", func(s *Scene, c *caller) { c.shows(s.keys.webhook) })},
		{outsider(), name + ", with a certificate of its authority for somebody else", byCertificate, ask("https", func(s *Scene, c *caller) { c.shows(s.keys.unnamed) })},
	}, extenders()...)
}

func extenders() []attempt {
	stolen := holder("a kube-scheduler")
	verb := func(verb string, change func(s *Scene, c *caller)) try {
		return func(ctx context.Context, s *Scene, _ clients) error {
			return s.leader(ctx, s.Extenders, func(c *caller) {
				c.url += "/" + verb
				c.shows(s.keys.scheduler)
				change(s, c)
			})
		}
	}
	binding := func(change func(s *Scene, b *extenderv1.ExtenderBindingArgs)) try {
		return verb("bind", func(s *Scene, c *caller) {
			b := extenderv1.ExtenderBindingArgs{PodNamespace: s.Victim, PodName: s.victimPod.Name, PodUID: s.victimPod.UID, Node: s.victimPod.Spec.NodeName}
			change(s, &b)
			c.json(b)
		})
	}
	return []attempt{
		{stolen, "the extender, in a text", "the handler: 415", verb("filter", func(_ *Scene, c *caller) { c.kind = "text/plain" })},
		{stolen, "the extender, by GET", "the handler: 405", verb("filter", func(_ *Scene, c *caller) { c.method = http.MethodGet })},
		{stolen, "the extender, with what is no JSON", "the handler: 400", verb("bind", func(_ *Scene, c *caller) { c.body = "{" })},
		{stolen, "the extender, with a pod of 4 MiB", "the handler: 413", verb("filter", func(_ *Scene, c *caller) {
			c.json(extenderv1.ExtenderArgs{Pod: padded("large", 4<<20), NodeNames: &[]string{nowhere}})
		})},
		{stolen, "a filter with a node that is not there", "the handler: no node passes", verb("filter", func(s *Scene, c *caller) {
			c.json(extenderv1.ExtenderArgs{Pod: s.waits, NodeNames: &[]string{nowhere}})
		})},
		{stolen, "a bind of a pod that is not there", "the handler: no such pod", binding(func(_ *Scene, b *extenderv1.ExtenderBindingArgs) { b.PodUID = "ghost" })},
		{stolen, "a bind of one pod by the UID of another", "the handler: 400 or the handler: no such pod", binding(func(_ *Scene, b *extenderv1.ExtenderBindingArgs) { b.PodName = "another" })},
		{stolen, "a bind of a pod that is bound elsewhere", "the handler: it is bound already", binding(func(s *Scene, b *extenderv1.ExtenderBindingArgs) { b.Node = s.elsewhere })},
		{stolen, "a bind of another scheduler's pod to a node that its volume can't follow to", "the arbiter", binding(func(s *Scene, b *extenderv1.ExtenderBindingArgs) { s.astray(b, s.elsewhere) })},
		{stolen, "a bind to a node that is not there", "the arbiter", binding(func(s *Scene, b *extenderv1.ExtenderBindingArgs) { s.astray(b, nowhere) })},
	}
}

func (s *Scene) astray(b *extenderv1.ExtenderBindingArgs, node string) {
	b.PodNamespace, b.PodName, b.PodUID, b.Node = s.Own, s.waits.Name, s.waits.UID, node
}

type caller struct {
	method, url, kind, body, token string
	certificates                   []tls.Certificate
}

func (c *caller) shows(certificate tls.Certificate) {
	c.certificates = []tls.Certificate{certificate}
}

func (c *caller) json(body any) {
	raw, _ := json.Marshal(body) // of types that can be encoded
	c.body = string(raw)
}

type answered struct {
	code int
	text string
}

func (c *caller) do(ctx context.Context) (answered, error) {
	if c.method == "" {
		c.method = http.MethodPost
	}
	if c.kind == "" {
		c.kind = "application/json"
	}
	ctx, cancel := context.WithTimeout(ctx, doorPatience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, c.method, c.url, bytes.NewReader([]byte(c.body)))
	if err != nil {
		return answered{}, err
	}
	request.Header.Set("Content-Type", c.kind)
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{ //nolint:gosec // an attacker does not ask who answers
		InsecureSkipVerify: true,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { // also a certificate of another authority
			if len(c.certificates) == 0 {
				return &tls.Certificate{}, nil
			}
			return &c.certificates[0], nil
		},
	}}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return answered{}, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(response.Body, largestOfDoors))
	return answered{response.StatusCode, string(raw)}, err
}

func (c *caller) send(ctx context.Context) error {
	got, err := c.do(ctx)
	if err != nil {
		return turnedAway(err)
	}
	return got.stopped()
}

// The alerts are crypto/tls's.
func turnedAway(err error) error {
	var alert tls.AlertError
	if errors.As(err, &alert) || strings.Contains(err.Error(), "remote error: tls:") {
		return outcome(byCertificate)
	}
	return err
}

var reviewed = regexp.MustCompile(`the API server does not know the token|nonResourceURL|Unauthorized|cannot get path`)

func (a answered) stopped() error {
	switch {
	case a.code == http.StatusBadRequest && strings.Contains(a.text, "HTTP request to an HTTPS server"):
		return outcome(byTLS)
	case (a.code == http.StatusForbidden || a.code == http.StatusUnauthorized) && reviewed.MatchString(a.text):
		return outcome(byReview)
	case a.code >= http.StatusBadRequest && a.code < http.StatusInternalServerError:
		return outcome(fmt.Sprintf("%s: %d", byHandler, a.code))
	case a.code == http.StatusOK:
		return a.result()
	}
	return fmt.Errorf("it answers %d: %s", a.code, a.text)
}

func (a answered) result() error {
	var result struct {
		Error                                   string
		NodeNames                               *[]string
		FailedNodes, FailedAndUnresolvableNodes extenderv1.FailedNodesMap
	}
	if err := json.Unmarshal([]byte(a.text), &result); err != nil {
		return fmt.Errorf("it answers %q", a.text)
	}
	switch {
	case strings.Contains(result.Error, "bound to"):
		return outcome(byHandler + ": it is bound already")
	case strings.Contains(result.Error, "node(s) "):
		return outcome("the arbiter")
	case strings.Contains(result.Error, "the pod does not exist"), strings.Contains(result.Error, "not found"):
		return outcome(byHandler + ": no such pod")
	case result.NodeNames != nil && len(*result.NodeNames) == 0:
		return outcome(byHandler + ": no node passes")
	}
	return fmt.Errorf("it answers %q", a.text)
}

// All ports must be stopped by the same defence.
func (s *Scene) everywhere(ports []string, at func(address string) error) error {
	if len(ports) == 0 {
		return errors.New("there is no such port")
	}
	var first error
	for i, address := range ports {
		err := at(address)
		switch {
		case err == nil:
			return nil
		case i > 0 && stopper(err) != stopper(first):
			return fmt.Errorf("%s: stopped by %s, and %s by %s", ports[0], stopper(first), address, stopper(err))
		}
		first = err
	}
	return first
}

// Processes that do not lead say so.
func (s *Scene) leader(ctx context.Context, ports []string, change func(*caller)) error {
	for _, address := range ports {
		c := caller{url: "https://" + address}
		change(&c)
		got, err := c.do(ctx)
		if err != nil {
			return turnedAway(err)
		}
		if !strings.Contains(got.text, "lead") {
			return got.stopped()
		}
	}
	return fmt.Errorf("nobody leads at %v", ports)
}

func (s *Scene) awaiting(ctx context.Context, name string, change func(*corev1.PodSpec)) (*corev1.Pod, error) {
	pod := sandbox.Pod(name, "data")
	change(&pod.Spec)
	return s.admin.kube.CoreV1().Pods(s.Own).Create(ctx, pod, metav1.CreateOptions{})
}
