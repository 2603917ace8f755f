// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// A slow or idle client keeps no connection for ever.
const (
	probeReadTimeout     = 5 * time.Second
	probeWriteTimeout    = 30 * time.Second
	probeShutdownTimeout = 2 * time.Second
)

// Probes serves probes and metrics on an address (host:port), without TLS if secure is nil, and returns the
// actual address. stop waits two seconds for requests.
func Probes(ctx context.Context, address string, handler http.Handler, secure *tls.Config) (at string, stop func(), err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: probeReadTimeout, ReadTimeout: probeReadTimeout,
		WriteTimeout: probeWriteTimeout, IdleTimeout: idleTimeout,
		TLSConfig: secure,
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if secure == nil {
			_ = server.Serve(listener) // ends with Shutdown
		} else {
			_ = server.ServeTLS(listener, "", "")
		}
	}()
	return listener.Addr().String(), func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeShutdownTimeout)
		defer cancel()
		_ = server.Shutdown(ending) // the rest is cut off with the process
		<-served
	}, nil
}
