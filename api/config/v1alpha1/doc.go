// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 is the configuration of Moorage's components, in the group
// config.moorage.dev: types, defaults and validation. These types are read from
// files and never stored in the API server.
//
// +kubebuilder:object:generate=true
package v1alpha1
