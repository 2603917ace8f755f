// SPDX-License-Identifier: Apache-2.0

package csinode

import (
	"context"

	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

type registration struct {
	registerapi.UnimplementedRegistrationServer
	config Config
}

func (r *registration) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{
		Type: registerapi.CSIPlugin, Name: r.config.Driver,
		Endpoint: r.config.csiSocket(), SupportedVersions: []string{"1.0.0"},
	}, nil
}

// The kubelet repeats a failed registration.
func (r *registration) NotifyRegistrationStatus(_ context.Context, s *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	if !s.GetPluginRegistered() {
		r.config.logger().Error("kubelet refused the CSI driver", "driver", r.config.Driver, "node", r.config.NodeName, "reason", s.GetError())
	}
	return &registerapi.RegistrationStatusResponse{}, nil
}
