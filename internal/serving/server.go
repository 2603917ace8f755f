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

const (
	idleTimeout     = 2 * time.Minute
	maxHeaderBytes  = 64 << 10
	shutdownTimeout = 10 * time.Second
)

// Server serves HTTP. Only TLS, Stopping and ShutdownDelay may be unset.
type Server struct {
	Handler http.Handler
	TLS     *tls.Config
	// ReadTimeout limits the sending of a request, WriteTimeout the answer, from the end of the request's
	// headers.
	ReadTimeout, WriteTimeout time.Duration
	// ShutdownDelay is the time of service after ctx is done.
	ShutdownDelay time.Duration
	Stopping      func()
}

// Serve serves on listener, and closes it, until ctx is done. Then it calls Stopping, goes on for
// ShutdownDelay, and lets running requests end. nil: an orderly end.
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
