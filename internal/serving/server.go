// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/klog/v2"
)

// Limits of every connection.
const (
	idleTimeout     = 2 * time.Minute
	maxHeaderBytes  = 64 << 10
	shutdownTimeout = 10 * time.Second
)

// Server serves HTTP. All fields but TLS, Stopping and ShutdownDelay must be
// set.
type Server struct {
	Handler http.Handler
	// TLS makes it HTTPS.
	TLS *tls.Config
	// ReadTimeout is how long a client may take to send a request, and
	// WriteTimeout how long the answer may take from the end of its headers on.
	ReadTimeout, WriteTimeout time.Duration
	// ShutdownDelay is how long it goes on after it was told to stop.
	ShutdownDelay time.Duration
	// Stopping is called when it is told to stop.
	Stopping func()
}

// Serve serves on listener, which it closes, until ctx is done. Then it calls
// Stopping, goes on for the shutdown delay, and lets the requests under way end.
// It returns nil after an orderly end.
func (s Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:           s.Handler,
		ReadHeaderTimeout: s.ReadTimeout,
		ReadTimeout:       s.ReadTimeout,
		WriteTimeout:      s.WriteTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		TLSConfig:         s.TLS,
	}
	ended := make(chan error, 1)
	go func() {
		if s.TLS == nil {
			ended <- server.Serve(listener)
		} else {
			ended <- server.ServeTLS(listener, "", "")
		}
	}()
	select {
	case err := <-ended:
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	if s.Stopping != nil {
		s.Stopping()
	}
	klog.FromContext(ctx).Info("Stopping", "address", listener.Addr().String(), "delay", s.ShutdownDelay)
	delay := time.NewTimer(s.ShutdownDelay)
	defer delay.Stop()
	select {
	case err := <-ended:
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-delay.C:
	}
	return shutdown(server, ended)
}

// shutdown lets the requests under way end, and cuts off the rest.
func shutdown(server *http.Server, ended <-chan error) error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return fmt.Errorf("requests were still under way after %s and were cut off: %w", shutdownTimeout, errors.Join(err, server.Close()))
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
