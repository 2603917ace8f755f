// SPDX-License-Identifier: Apache-2.0

// Package manifests embeds the plain YAML that hack/render makes from the chart:
//
//   - crds.yaml: the CustomResourceDefinitions
//   - rbac.yaml: service accounts, roles and bindings, for each component
//   - policies.yaml: the ValidatingAdmissionPolicies and their bindings
//   - flowcontrol.yaml: where the API server ranks Moorage's own calls
//   - webhook.yaml: the MutatingWebhookConfiguration
//   - certificate.yaml: cert-manager's Certificate for the webhook, and its Issuer
//   - deploy.yaml: the webhook's Service, configuration and Deployments
//   - extender.yaml: the scheduler as an extender of others, which is optional, in place of deploy.yaml's
//
// A cluster that runs the processes elsewhere, as the sandbox does, applies the first three, and
// webhook.yaml with its own address. Everything is made for the namespace moorage-system, which
// must exist.
package manifests

import "embed"

// Namespace is the manifests' namespace.
const Namespace = "moorage-system"

// FS holds the files named in the package's documentation, at its root. It is
// read-only and safe for parallel use.
//
//go:embed *.yaml
var FS embed.FS
