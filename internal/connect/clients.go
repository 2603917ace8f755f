// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/internal/lead"
)

// Config says how a process with a Lease reaches the API server.
type Config struct {
	// Kubeconfig is a file; empty: the pod's service account.
	Kubeconfig string
	// Name is the User-Agent.
	Name string
	// QPS and Burst limit each client's requests a second.
	QPS   float32
	Burst int
	// WriteQPS, if not 0, is for the writing clients; negative: no limit.
	WriteQPS float32
	// WriteTimeout bounds a write, also in the API server. Zero: the request's context.
	WriteTimeout time.Duration
	// RenewDeadline is how long the leader tries to renew; a request takes at most half of it.
	RenewDeadline time.Duration
	// Watches, if set, wraps the transport of reads and watches.
	Watches func(http.RoundTripper) http.RoundTripper
}

// Clients are for reads and watches; for writes, with a deadline; and for the Lease, which never waits
// behind the others.
type Clients struct {
	Read, Write, Lease kubernetes.Interface
	// ReadMoorage and WriteMoorage are for Moorage's types.
	ReadMoorage, WriteMoorage client.Interface
	// ReadAny and WriteAny are for others' types.
	ReadAny, WriteAny dynamic.Interface
}

// New makes the clients and sends nothing.
func New(config Config) (*Clients, error) {
	read, err := Rest(config.Kubeconfig, config.Name)
	if err != nil {
		return nil, err
	}
	read.QPS, read.Burst = config.QPS, config.Burst
	write, lease := rest.CopyConfig(read), rest.CopyConfig(read)
	if config.Watches != nil {
		read.Wrap(config.Watches)
	}
	write.Timeout = config.WriteTimeout
	if config.WriteQPS != 0 {
		write.QPS = config.WriteQPS
	}
	write.Wrap(lead.Punctual)
	write.Wrap(SendOnce)
	lease.Timeout = config.RenewDeadline / 2

	var c Clients
	for _, made := range []struct {
		to     *kubernetes.Interface
		config *rest.Config
	}{{&c.Read, read}, {&c.Write, write}, {&c.Lease, lease}} {
		clientset, err := kubernetes.NewForConfig(Protobuf(made.config))
		if err != nil {
			return nil, fmt.Errorf("client for the API server: %w", err)
		}
		*made.to = clientset
	}
	if c.ReadMoorage, err = client.NewForConfig(read); err != nil {
		return nil, err
	}
	if c.WriteMoorage, err = client.NewForConfig(write); err != nil {
		return nil, err
	}
	if c.ReadAny, err = dynamic.NewForConfig(read); err != nil {
		return nil, fmt.Errorf("client for the API server: %w", err)
	}
	if c.WriteAny, err = dynamic.NewForConfig(write); err != nil {
		return nil, fmt.Errorf("client for the API server: %w", err)
	}
	return &c, nil
}
