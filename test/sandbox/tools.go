// SPDX-License-Identifier: Apache-2.0

//go:build tools

package sandbox

// The sandbox runs external-attacher as a separate binary: in the multi-call binary it would register a
// feature gate that kube-apiserver registers with another specification. This import keeps its module.
import _ "github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher"
