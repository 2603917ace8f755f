// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Rest is the connection by a kubeconfig file, or else the pod's service account. name is the User-Agent,
// for audit logs and managedFields.
func Rest(kubeconfig, name string) (*rest.Config, error) {
	config, err := find(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("find the API server (outside of a cluster, give --kubeconfig): %w", err)
	}
	config.UserAgent = name
	return config, nil
}

// Kube returns a client for a few requests. An error names the failed part.
func Kube(kubeconfig, name string) (kubernetes.Interface, error) {
	config, err := Rest(kubeconfig, name)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	return client, nil
}

func find(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", kubeconfig)
}

// Protobuf returns a copy for cheaper protobuf. It is for built-in types only: custom resources have no
// protobuf.
func Protobuf(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return config
}
