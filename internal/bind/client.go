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
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// restAfterFailure is how long nobody is asked after a request that got no answer: pods are
// given tickets then, instead of each waiting for a controller that does not answer.
const restAfterFailure = 5 * time.Second

// maxAnswerBytes bounds what is read of an answer.
const maxAnswerBytes = 16 << 10

// errResting says that nobody is asked for a moment.
var errResting = fmt.Errorf("%w: it did not answer a moment ago", ErrUnreachable)

// Client asks a controller by HTTPS. Safe for parallel use.
type Client struct {
	url     string
	connect func() (http.RoundTripper, error)
	timeout time.Duration
	now     func() time.Time

	mu    sync.Mutex
	http  *http.Client // nil: not connected
	rests time.Time    // until then nobody is asked
}

var _ Binder = &Client{}

// NewClient returns a client of the controller at url, such as
// https://moorage-controller-bind.moorage-system.svc:8446. connect makes what it is reached
// by: again after each failure, so that neither a broken connection nor a certificate that
// was replaced keeps it from the controller that leads now. A request takes no longer than
// timeout.
func NewClient(url string, connect func() (http.RoundTripper, error), timeout time.Duration) *Client {
	return &Client{url: url + Path, connect: connect, timeout: timeout, now: time.Now}
}

// Bind is Binder's. What certainly reached nobody is ErrUseTicket, too.
func (c *Client) Bind(ctx context.Context, r Request) error {
	body, err := json.Marshal(r)
	if err != nil {
		return errors.Join(ErrUseTicket, err)
	}
	connection, err := c.connected()
	if err != nil {
		return errors.Join(ErrUnreachable, err)
	}
	bounded, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(bounded, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return errors.Join(ErrUseTicket, err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := connection.Do(request)
	if err != nil {
		if ctx.Err() == nil {
			c.failed(connection)
		}
		if notSent(err) {
			err = errors.Join(ErrUnreachable, err)
		}
		return fmt.Errorf("ask the controller to bind pod %s: %w", r.Pod, err)
	}
	defer func() { _ = answer.Body.Close() }()
	return outcome(r, answer)
}

// connected returns what the controller is reached by, unless nobody is asked for a moment.
func (c *Client) connected() (*http.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now().Before(c.rests) {
		return nil, errResting
	}
	if c.http != nil {
		return c.http, nil
	}
	transport, err := c.connect()
	if err != nil {
		c.rests = c.now().Add(restAfterFailure)
		return nil, err
	}
	c.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c.http, nil
}

// failed has nobody asked for a moment, and then by another connection.
func (c *Client) failed(connection *http.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.http == connection {
		c.http, c.rests = nil, c.now().Add(restAfterFailure)
	}
	connection.CloseIdleConnections()
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
