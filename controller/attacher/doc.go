// SPDX-License-Identifier: Apache-2.0

// Package attacher is moorage-attacher: a CSI sidecar that carries VolumeAttachments out. It can replace
// external-attacher and be replaced by it at any moment: same flags, lock, finalizers, annotation and
// status.
//
// Package decide decides. All state is behind one mutex; steps run outside of it.
package attacher
