// SPDX-License-Identifier: Apache-2.0

package report

import (
	"io"
	"net/http"
	"path"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

type streams struct{ open *prometheus.GaugeVec }

func newStreams() *streams {
	return &streams{open: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "moorage_watch_streams",
		Help: "Watches of the API server that are open, by resource. 0: changes of these objects are not seen.",
	}, []string{"resource"})}
}

// Watches counts the watches opened through a transport.
func (m *Metrics) Watches(transport http.RoundTripper) http.RoundTripper {
	if m == nil {
		return transport
	}
	return &watchCounter{transport, m.streams.open}
}

type watchCounter struct {
	http.RoundTripper
	open *prometheus.GaugeVec
}

// RoundTrip implements http.RoundTripper.
func (c *watchCounter) RoundTrip(request *http.Request) (*http.Response, error) {
	watches := request.URL.Query().Get("watch")
	if watches != "true" && watches != "1" {
		return c.RoundTripper.RoundTrip(request)
	}
	open := c.open.WithLabelValues(path.Base(request.URL.Path)) // 0 until it is answered
	response, err := c.RoundTripper.RoundTrip(request)
	if err != nil || response.StatusCode != http.StatusOK {
		return response, err
	}
	open.Inc()
	response.Body = &stream{ReadCloser: response.Body, end: sync.OnceFunc(open.Dec)}
	return response, nil
}

// WrappedRoundTripper gives client-go the transport below.
func (c *watchCounter) WrappedRoundTripper() http.RoundTripper { return c.RoundTripper }

type stream struct {
	io.ReadCloser
	end func()
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if err != nil {
		s.end()
	}
	return n, err
}

// Close implements io.Closer.
func (s *stream) Close() error {
	s.end()
	return s.ReadCloser.Close()
}
