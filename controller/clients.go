// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/lead"
)

// clients are the ways to the API server: one to read and watch, one to write
// with a timeout that the API server is told, too, and one for the Lease,
// which never waits behind the others.
type clients struct {
	read, write, lease kubernetes.Interface
	readOwn, writeOwn  client.Interface
}

func newClients(config Config) (*clients, error) {
	base, err := restConfig(config)
	if err != nil {
		return nil, err
	}
	write := rest.CopyConfig(base)
	write.Timeout, write.QPS = config.WriteTimeout, -1 // the executor limits the rate
	write.Wrap(lead.Punctual)
	lease := rest.CopyConfig(base)
	lease.Timeout = config.RenewDeadline / 2
	var c clients
	for _, made := range []struct {
		to     *kubernetes.Interface
		config *rest.Config
	}{{&c.read, base}, {&c.write, write}, {&c.lease, lease}} {
		protobuf := rest.CopyConfig(made.config)
		protobuf.ContentType = runtime.ContentTypeProtobuf
		protobuf.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
		clientset, err := kubernetes.NewForConfig(protobuf)
		if err != nil {
			return nil, fmt.Errorf("client for the API server: %w", err)
		}
		*made.to = clientset
	}
	if c.readOwn, err = client.NewForConfig(base); err != nil {
		return nil, err
	}
	if c.writeOwn, err = client.NewForConfig(write); err != nil {
		return nil, err
	}
	return &c, nil
}

func restConfig(config Config) (*rest.Config, error) {
	var base *rest.Config
	var err error
	if config.Kubeconfig != "" {
		base, err = clientcmd.BuildConfigFromFlags("", config.Kubeconfig)
	} else {
		base, err = rest.InClusterConfig()
	}
	if err != nil {
		return nil, fmt.Errorf("find the API server (is --kubeconfig right?): %w", err)
	}
	base.QPS, base.Burst = config.QPS, config.Burst
	base.UserAgent = v1alpha1.ControllerName
	return base, nil
}
