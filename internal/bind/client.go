// SPDX-License-Identifier: Apache-2.0

package bind

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// restAfterFailure is how long nobody is asked after a request that got no answer: pods are
// given tickets then, instead of each waiting for a controller that does not answer.
const restAfterFailure = 5 * time.Second

// maxAnswerBytes bounds what is read of an answer.
const maxAnswerBytes = 16 << 10

// Client asks a controller by HTTPS. Safe for parallel use.
type Client struct {
	url     string
	http    *http.Client
	timeout time.Duration
	now     func() time.Time
	rests   atomic.Int64 // until when, in nanoseconds since 1970
}

var _ Binder = &Client{}

// NewClient returns a client of the controller at url, such as
// https://moorage-controller-bind.moorage-system.svc:8446, which it reaches by transport. A
// request takes no longer than timeout.
func NewClient(url string, transport http.RoundTripper, timeout time.Duration) *Client {
	return &Client{
		url: url + Path, timeout: timeout, now: time.Now,
		http: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
}

// Bind is Binder's. What certainly reached nobody is ErrUseTicket, too.
func (c *Client) Bind(ctx context.Context, r Request) error {
	if c.now().UnixNano() < c.rests.Load() {
		return fmt.Errorf("%w: the controller did not answer a moment ago", ErrUseTicket)
	}
	body, err := json.Marshal(r)
	if err != nil {
		return errors.Join(ErrUseTicket, err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return errors.Join(ErrUseTicket, err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := c.http.Do(request)
	if err != nil {
		c.rests.Store(c.now().Add(restAfterFailure).UnixNano())
		if notSent(err) {
			err = errors.Join(ErrUseTicket, err)
		}
		return fmt.Errorf("ask the controller to bind pod %s: %w", r.Pod, err)
	}
	defer func() { _ = answer.Body.Close() }()
	return outcome(r, answer)
}

// notSent says whether a request reached nobody, since there was no connection.
func notSent(err error) bool {
	var dial *net.OpError
	return errors.As(err, &dial) && dial.Op == "dial"
}

// outcome is what an answer says.
func outcome(r Request, answer *http.Response) error {
	said, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswerBytes)) // it is for people only
	if answer.StatusCode == http.StatusNoContent {
		return nil
	}
	var status metav1.Status
	if json.Unmarshal(said, &status) != nil || status.Message == "" {
		status.Message = answer.Status
	}
	err := fmt.Errorf("the controller on pod %s: %s", r.Pod, status.Message)
	if answer.StatusCode >= http.StatusBadRequest && answer.StatusCode < http.StatusInternalServerError {
		return errors.Join(ErrUseTicket, err) // it has done nothing
	}
	return err
}
