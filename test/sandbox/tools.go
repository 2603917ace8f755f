// SPDX-License-Identifier: Apache-2.0

//go:build tools

package sandbox

// The sandbox runs external-attacher as a binary of its own: linked into the
// multi-call binary it would register a feature gate that kube-apiserver
// registers too, with another specification. This import keeps its module.
import _ "github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher"
